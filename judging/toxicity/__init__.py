"""Toxicity scorers, with one small protocol."""

from parley.judging.toxicity.registry import SCORERS, find_scorer
from parley.judging.toxicity.scorer import Scorer, Toxicity

__all__ = ["SCORERS", "Scorer", "Toxicity", "find_scorer"]
