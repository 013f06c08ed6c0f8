"""The study `rubric`: several judges score texts by a rubric."""

from parley.judging.scoring.study import RubricScores

__all__ = ["RubricScores"]
