"""`fairness-prompt`: the default, preceded by a request to be fair.

`fairness-prompt-rule` also states BBQ's rule for ambiguous contexts, so its gains are not those of fairness alone.
"""

from __future__ import annotations

from typing import ClassVar

from parley.judging.bbq.method import PromptedMethod
from parley.judging.study import Prompt


class FairnessPromptMethod(PromptedMethod):
    name: ClassVar[str] = "fairness-prompt"
    used = (Prompt.load("bbq/fairness_prompt"),)


class FairnessPromptRule(PromptedMethod):
    name: ClassVar[str] = "fairness-prompt-rule"
    used = (Prompt.load("bbq/fairness_prompt_rule"),)
