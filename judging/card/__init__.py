"""The judge's card: a fixed, versioned battery of silent ballots that says what a model can do as a judge."""

from parley.judging.card.study import JudgesCard

__all__ = ["JudgesCard"]
