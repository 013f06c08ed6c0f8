"""Training that runs studies: the evaluation of trained models, the RLAIF baseline, ablations and repeats.

Metrics and configs are in `parley.training`.
"""
