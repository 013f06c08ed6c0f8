"""SQuAD v2, with and without a search agent."""

from parley.judging.squad.study import SquadStudy

__all__ = ["SquadStudy"]
