"""Methods by name: ours, those of installed packages (entry points in the group `parley.bbq`), and files.

parley run bbq --method default,cot
parley run bbq --method my_method.py:Mine
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judging.bbq.method import Method
from judging.methods import Methods

METHODS: dict[str, str] = {
    "default": "judging.bbq.default:Default",
    "cot": "judging.bbq.cot:ChainOfThought",
    "fairness-prompt": "judging.bbq.fairness_prompt:FairnessPrompt",
    "fairthinking": "judging.bbq.fairthinking:FairThinking",
    "self-debias-explanation": "judging.bbq.self_debias_explanation:SelfDebiasExplanation",
    "self-debias-reprompting": "judging.bbq.self_debias_reprompting:SelfDebiasReprompting",
    "logprob": "judging.bbq.logprob:LogProb",
    "stardtox": "judging.bbq.stardtox:Stardtox",
    "mabrf": "judging.bbq.mabrf:Mabrf",
    "mabrf-search": "judging.bbq.mabrf:MabrfSearch",
}
MEMBERS = ("name", "Settings", "needs_logprobs", "prompts", "calls", "reply_tokens", "solve")
_METHODS: Methods[Method] = Methods(METHODS, "parley.bbq", MEMBERS, "judging/bbq/method.py")


def known_methods() -> dict[str, str]:
    """The names of all methods, installed ones among them."""
    return _METHODS.known()


def find_method(name: str) -> type[Method]:
    """The class of a method, by its name, by `file.py:Class`, or by an entry point."""
    return _METHODS.find(name)


def make_methods(names: Sequence[str], settings: Mapping[str, str]) -> dict[str, Method]:
    return _METHODS.make(names, settings)
