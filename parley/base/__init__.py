"""Shared basics: errors, texts, TOML, the home folder, plug-ins and hidden addresses. Imports nothing else of
Parley.
"""
