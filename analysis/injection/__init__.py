"""Injection: how much an attempt changes the score, and the report."""
