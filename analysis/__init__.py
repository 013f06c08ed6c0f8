"""Parley's analysis: pure functions over data frames. Statistics, MALIBU's tables, figures."""

__house__ = "parley"
