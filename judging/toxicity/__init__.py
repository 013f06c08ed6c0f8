"""Toxicity scorers, with one small protocol."""

from parley.judging.toxicity.registry import find_scorer, known_scorers
from parley.judging.toxicity.scorer import Scorer, Toxicity

__all__ = ["Scorer", "Toxicity", "find_scorer", "known_scorers"]
