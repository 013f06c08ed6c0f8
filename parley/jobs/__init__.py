"""Work beyond a single run: the evaluation of trained models, the RLAIF baseline, ablations, forecasts of large runs,
files that studies write, and the critique loop for applications.

Metrics and configs of the first three are in `parley.training`.
"""
