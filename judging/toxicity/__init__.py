"""Toxicity scorers: one file each, behind one small protocol."""

from judging.toxicity.scorer import Scorer, Toxicity

__all__ = ["Scorer", "Toxicity"]
