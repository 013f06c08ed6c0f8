"""Texts scored by a rubric, with several judges."""

from parley.judging.scoring.study import RubricScores

__all__ = ["RubricScores"]
