"""MABRF: solve, judge, (search,) rephrase, terminate. `method` has the two methods of BBQ that use it."""

from parley.judging.bbq.mabrf.loop import Loop
from parley.judging.bbq.mabrf.replies import Judgement, Reasoning, Steps, Terminal, read_place

__all__ = ["Judgement", "Loop", "Reasoning", "Steps", "Terminal", "read_place"]
