"""Simulated models in place of a study's models, so that `--dry-run` can count calls and tokens.

If the study's model is itself simulated, replies are that model's, without its delays and faults. Otherwise they are
about as long as a real model's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from autogen_core.models import LLMMessage
from pydantic import BaseModel

from parley.agents.models.base import Client
from parley.agents.models.registry import Models, reads_silently
from parley.agents.models.request import Request, split_name
from parley.agents.models.sim import INSULTS, REMARKS, SimClient
from parley.agents.models.sim_options import SimOptions
from parley.agents.providers import provider_of

USUAL_CHARS = 360
"""Length of a text, in characters, if the prompt states none: justifications have 80 to 95 tokens on average if not
cut, by a 1.5-billion-parameter model."""
CALM = {"latency": 0.0, "fail": 0.0}
LOWEST: Mapping[str, float] = {"noise": 0.0, "base": 0.0}
HIGHEST: Mapping[str, float] = {"noise": 0.0, "base": 100.0, "toxic": 1.0}
"""Scores at either end of the scale: a loop that stops at a good score runs to its end with one of them."""
_STATED_WORDS = re.compile(r"\b(\d+) words\b")
_OWN_TEXTS = re.compile("|".join(map(re.escape, (*REMARKS, *INSULTS))))


class StandIn(SimClient):
    """A simulated model for a rehearsal.

    Args:
        name: The model's name with its options.
        scores: `LOWEST` or `HIGHEST`; ignored for a model that is simulated anyway.
    """

    next_tokens = True  # the study has checked the model that this one replaces

    def __init__(self, name: str, scores: Mapping[str, float] = LOWEST) -> None:
        plain, query = split_name(name)
        self.simulated = provider_of(plain).simulated
        options = {"silent": reads_silently(name), **scores}
        super().__init__(*((plain, query) if self.simulated else ("sim/any", options)))

    def options_for(self, messages: Sequence[LLMMessage]) -> SimOptions:
        return super().options_for(messages).model_copy(update=CALM)

    def _compose(self, request: Request, chat: list[dict[str, Any]], options: SimOptions) -> str:
        text = super()._compose(request, chat, options)
        if self.simulated:
            return text
        stated = _STATED_WORDS.findall("\n".join(message["content"] or "" for message in chat))
        length = min(
            5 * int(stated[-1]) if stated else USUAL_CHARS,
            _most_chars(request.schema) if isinstance(request.schema, type) else USUAL_CHARS * 9,
            4 * int(request.options.get("max_tokens", USUAL_CHARS)),
        )
        if _OWN_TEXTS.match(text):
            return text[:length].ljust(length, ".")
        return _OWN_TEXTS.sub(lambda match: match[0].ljust(length, "."), text)


@lru_cache(maxsize=256)
def _most_chars(schema: type[BaseModel]) -> int:
    """The length of the shortest text to which a schema limits its fields."""
    return min(map(int, re.findall(r"'maxLength': (\d+)", str(schema.model_json_schema()))), default=USUAL_CHARS * 9)


class Stage(Models):
    """The models of a rehearsal: a stand-in under each name that a study uses."""

    rehearsal = True

    def __init__(self, scores: Mapping[str, float] = LOWEST) -> None:
        super().__init__()
        self._scores = scores

    def __getitem__(self, name: str) -> Client:
        if name not in self._open:
            self._open[name] = StandIn(name, self._scores)
        return self._open[name]
