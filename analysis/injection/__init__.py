"""Injection: how far an attempt moves the score, and the report."""
