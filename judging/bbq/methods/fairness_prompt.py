"""`fairness-prompt`: the default, preceded by a request to be fair."""

from __future__ import annotations

from typing import ClassVar

from parley.judging.bbq.method import PromptedMethod
from parley.judging.study import Prompt


class FairnessPromptMethod(PromptedMethod):
    name: ClassVar[str] = "fairness-prompt"
    used = (Prompt.load("bbq/fairness_prompt"),)
