"""Methods by name: ours, those of installed packages (entry points in the group `parley.bbq`), and files.

parley run bbq --method default,cot
parley run bbq --method my_method.py:Mine
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from pydantic import ValidationError

from agents import ConfigError
from judging.bbq.method import Method
from judging.registry import load_module

METHODS: dict[str, str] = {
    "default": "judging.bbq.default:Default",
    "cot": "judging.bbq.cot:ChainOfThought",
    "fairness-prompt": "judging.bbq.fairness_prompt:FairnessPrompt",
    "fairthinking": "judging.bbq.fairthinking:FairThinking",
    "self-debias-explanation": "judging.bbq.self_debias_explanation:SelfDebiasExplanation",
    "self-debias-reprompting": "judging.bbq.self_debias_reprompting:SelfDebiasReprompting",
    "logprob": "judging.bbq.logprob:LogProb",
    "mabrf": "judging.bbq.mabrf:Mabrf",
    "mabrf-search": "judging.bbq.mabrf:MabrfSearch",
}
MEMBERS = ("name", "Settings", "needs_logprobs", "prompts", "calls", "reply_tokens", "solve")


def known_methods() -> dict[str, str]:
    return {**{entry.name: entry.value for entry in entry_points(group="parley.bbq")}, **METHODS}


def find_method(name: str) -> type[Method]:
    target = known_methods().get(name, name)
    module_name, colon, class_name = target.rpartition(":")
    if not colon:
        known = ", ".join(known_methods())
        raise ConfigError(f"unknown method '{name}' (known: {known}; or your own as file.py:Class or module:Class)")
    method: Any = getattr(load_module(module_name), class_name, None)
    missing = [member for member in MEMBERS if not hasattr(method, member)]
    if method is None or missing:
        why = f"lacks {', '.join(missing)}" if method is not None else "is not there"
        raise ConfigError(f"{target} is not a method: {class_name} {why} (see judging/bbq/method.py)")
    return method  # type: ignore[no-any-return]


def make_methods(names: Sequence[str], settings: Mapping[str, str]) -> dict[str, Method]:
    """The methods by their own names, each with the settings that are its own; one that is nobody's is refused."""
    classes = [find_method(name) for name in names]
    known = {key for method in classes for key in method.Settings.model_fields}
    if strangers := sorted(set(settings) - known):
        raise ConfigError(f"no method has a setting '{strangers[0]}' (known: {', '.join(sorted(known)) or 'none'})")
    made: dict[str, Method] = {}
    for method in classes:
        own = {key: value for key, value in settings.items() if key in method.Settings.model_fields}
        try:
            chosen = method.Settings.model_validate(own)
        except ValidationError as error:
            first = error.errors()[0]
            raise ConfigError(f"{method.name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        if method.name in made:
            raise ConfigError(f"the method '{method.name}' is named twice")
        made[method.name] = method(chosen)
    return made
