"""The study `bbq`, and its methods of asking a model, one small file each."""

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
