"""Parley's analysis: pure functions over data frames.

`stats` has the statistics, `reporting` what reports are made of. Neither knows a study: those are in `parley.judging`.
"""
