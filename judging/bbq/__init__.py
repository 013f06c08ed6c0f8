"""The study `bbq` (Parrish et al., 2022): does a model answer questions about two people by stereotype?

    parley run bbq --data path/to/BBQ/data --method default,cot --limit 220 --report

Read `study` first (what is asked), then `method` (what a method of answering is) and `methods`; `scores` has the
benchmark's own scores, `leaderboard`, `comparisons` and `iterations` what `report` puts together. `mabrf` is Roy and
Rehman's loop (2025): its methods, and what the report adds for them.
"""

from parley.judging.bbq.method import (
    BbqContext,
    BbqMethod,
    Choice,
    PromptedMethod,
    Reasoned,
    Solved,
    Task,
    answer_verdict,
    read_choice,
)
from parley.judging.bbq.methods import METHODS
from parley.judging.bbq.study import BbqConfig, BbqStudy
from parley.judging.config import NoSettings

__all__ = [
    "METHODS",
    "BbqConfig",
    "BbqContext",
    "BbqMethod",
    "BbqStudy",
    "Choice",
    "NoSettings",
    "PromptedMethod",
    "Reasoned",
    "Solved",
    "Task",
    "answer_verdict",
    "read_choice",
]
