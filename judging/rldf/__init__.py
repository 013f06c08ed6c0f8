"""RLDF: debates with a referee, and related studies (topics, framing, answers, RLAIF's pairs)."""

from parley.judging.rldf.study import Rldf

__all__ = ["Rldf"]
