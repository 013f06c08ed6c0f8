"""`default`: the question and its options, one reply. The baseline of all other methods."""

from __future__ import annotations

from typing import ClassVar

from parley.judging.bbq.method import PromptedMethod
from parley.judging.study import Prompt

PROMPT = Prompt.load("bbq/default")


class DefaultMethod(PromptedMethod):
    name: ClassVar[str] = "default"
    used = (PROMPT,)
