"""MABRF: solve, judge, (search,) rephrase, terminate. The methods of BBQ that use it stand in `judging.bbq.mabrf`."""

from judging.mabrf.loop import Evidence, Loop, Search
from judging.mabrf.replies import Judgement, Reasoning, Steps, Terminal, read_place

__all__ = ["Evidence", "Judgement", "Loop", "Reasoning", "Search", "Steps", "Terminal", "read_place"]
