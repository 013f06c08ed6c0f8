"""`cot`: zero-shot chain of thought (Kojima et al. 2022), the reasoning and the answer in one reply."""

from __future__ import annotations

from typing import ClassVar

from parley.judging.bbq.method import PromptedMethod, Reasoned
from parley.judging.study import Prompt


class ChainOfThought(PromptedMethod):
    name: ClassVar[str] = "cot"
    used = (Prompt.load("bbq/cot"),)
    reply = Reasoned
