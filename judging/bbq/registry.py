"""Methods by name: the shipped ones, those of installed packages (entry points in the group `parley.bbq`), and files.

parley run bbq --method default,cot
parley run bbq --method my_method.py:Mine
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parley.judging.bbq.method import BbqMethod
from parley.judging.methods import Methods

METHODS: dict[str, str] = {
    "default": "parley.judging.bbq.methods.default:DefaultMethod",
    "cot": "parley.judging.bbq.methods.cot:ChainOfThought",
    "fairness-prompt": "parley.judging.bbq.methods.fairness_prompt:FairnessPromptMethod",
    "fairness-prompt-rule": "parley.judging.bbq.methods.fairness_prompt:FairnessPromptRule",
    "fairthinking": "parley.judging.bbq.methods.fairthinking:FairThinking",
    "self-debias-explanation": "parley.judging.bbq.methods.self_debias_explanation:SelfDebiasExplanation",
    "self-debias-reprompting": "parley.judging.bbq.methods.self_debias_reprompting:SelfDebiasReprompting",
    "logprob": "parley.judging.bbq.methods.logprob:LogProb",
    "stardtox": "parley.judging.bbq.methods.stardtox:StardtoxMethod",
    "stardtox-rule": "parley.judging.bbq.methods.stardtox:StardtoxRule",
    "mabrf": "parley.judging.bbq.methods.mabrf.method:Mabrf",
    "mabrf-search": "parley.judging.bbq.methods.mabrf.method:MabrfSearch",
}
MEMBERS = ("name", "Settings", "needs_logprobs", "prompts", "calls", "reply_tokens", "solve")
_METHODS: Methods[BbqMethod] = Methods(METHODS, "parley.bbq", MEMBERS, "judging/bbq/method.py")


def known_methods() -> dict[str, str]:
    """The names of all methods, including those of installed packages."""
    return _METHODS.known()


def find_method(name: str) -> type[BbqMethod]:
    """The class of a method, by its name, by `file.py:Class`, or by an entry point."""
    return _METHODS.find(name)


def make_methods(names: Sequence[str], settings: Mapping[str, str]) -> dict[str, BbqMethod]:
    """The methods by name, each with its own settings."""
    return _METHODS.make(names, settings)
