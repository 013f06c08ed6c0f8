"""MABRF: solve, judge, (search,) rephrase, terminate. The methods of BBQ that use it stand in `judging.bbq.mabrf`."""

from judging.mabrf.loop import Loop
from judging.mabrf.replies import Judgement, Reasoning, Steps, Terminal, read_place

__all__ = ["Judgement", "Loop", "Reasoning", "Steps", "Terminal", "read_place"]
