"""Parley's analysis: pure functions over data frames.

`stats` has the statistics, `reporting` what reports are made of, and each study a folder
with its numbers and its report.
"""
