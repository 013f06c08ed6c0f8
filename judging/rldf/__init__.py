"""RLDF: debates with a referee, and the studies around them (topics, framing, answers, RLAIF's pairs)."""

from parley.judging.rldf.study import Rldf

__all__ = ["Rldf"]
