"""The study `rubric`: several judges score texts by a rubric."""

from parley.judging.rubric.study import RubricScores

__all__ = ["RubricScores"]
