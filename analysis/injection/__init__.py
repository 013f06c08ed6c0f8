"""Injection: the report on instructions in judged texts."""
