"""Work that takes several runs: the evaluation of trained models, the RLAIF baseline, ablations.

Their metrics and configs are in `parley.training`.
"""
