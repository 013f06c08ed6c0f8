"""The study `attention`: how much attention a model pays to the words of a framing; needs its weights.

    parley run attention --from runs/framing-….sqlite --report

It reads the prompts of a framing run as they were sent. Each prompt is a unit; its verdicts are the share of attention
on the framing's words, and the share under uniform attention. Layers and tokens are in the transcript.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Self

from pydantic import BaseModel, Field

from parley.agents import Models, Transcript, Turn
from parley.agents.models.catalogue import catalogue, fetch, is_fetched
from parley.agents.providers import provider_of
from parley.base.errors import ConfigError
from parley.judging.attention.weights import AttentionWeights, require_weights
from parley.judging.config import limit_field
from parley.judging.framing.study import ASKED_IN, Framing
from parley.judging.study import Chat, EarlierRun, Facet, Measure, Outcome, Study, Unit, Verdict


class AttentionConfig(BaseModel, extra="forbid", frozen=True, validate_by_name=True, validate_by_alias=True):
    """The settings: the prompts and the weights."""

    framing: str = Field(alias="from", title="RUN", description="a run file of the study framing")
    weights: str | None = Field(
        None, title="PATH", description="a .gguf file or a transformers folder (default: the run's own weights)"
    )
    limit: int | None = limit_field("number of topics: the first of the framing run")


class AttentionStudy(Study):
    """Attention to the framing's words, in the prompts of a framing run; needs the model's weights."""

    name = "attention"
    Config = AttentionConfig
    report = "parley.judging.attention.report:report"
    measures = (Measure("share", "share of attention", scale=(0, 1)),)
    facets = (
        Facet("topic", "text", title="{}"),
        Facet("framing", "varied", title="{}"),
        Facet("weights", "technical"),
    )

    def __init__(self, config: AttentionConfig, run: EarlierRun) -> None:
        self.config: AttentionConfig = config
        if run.study != Framing.name:
            raise ConfigError(f"{config.framing} is a run of '{run.study}'; attention needs a run of '{Framing.name}'")
        self._prompts: dict[str, Chat] = {
            f"{topic}/{speaker.removeprefix(ASKED_IN)}": chat
            for topic, chats in islice(run.prompts.items(), config.limit)
            for speaker, chat in chats.items()
            if speaker.startswith(ASKED_IN)
        }
        if not self._prompts:
            raise ConfigError(f"{config.framing} has no finished unit yet")
        self._path = Path(config.weights) if config.weights else _weights_of(str(run.config["model"]))
        require_weights(self._path)

    @classmethod
    def make(cls, config: AttentionConfig, earlier_run: Callable[[str], EarlierRun]) -> Self:
        return cls(config, earlier_run(config.framing))

    @cached_property
    def _weights(self) -> AttentionWeights:
        return AttentionWeights.load(self._path)

    def models(self) -> list[str]:
        return []

    def sources(self) -> Mapping[str, str]:
        return {"weights": self._path.name}

    def plan(self) -> Iterator[Unit]:
        for name in self._prompts:
            topic, _, frame = name.rpartition("/")
            yield Unit(name, {"topic": topic, "framing": frame, "weights": self._path.name})

    async def run(self, unit: Unit, models: Models) -> Outcome:
        chat = self._prompts[unit.id]
        attention = self._weights.attention_to(chat, chat[-1]["content"].partition("\n")[0])
        each = json.dumps({"by_layer": attention.by_layer, "by_token": attention.by_token}, ensure_ascii=False)
        turns = (Turn("user", "narrator", 0, chat[-1]["content"]), Turn("attention", "evaluator", 1, each))
        values = {"share": attention.share, "even": attention.even, "phrase_tokens": float(attention.phrase_tokens)}
        verdicts = [Verdict.from_turn(turns[1], name, value=value, status="ok") for name, value in values.items()]
        return Outcome(Transcript(turns, "measured"), tuple(verdicts))


def _weights_of(model: str) -> Path:
    name = model.partition("?")[0].partition("/")[2]
    if not provider_of(model).embedded:
        raise ConfigError(f"{model} has no local weights: give a .gguf file or a folder with --weights")
    if name in catalogue() and not is_fetched(name):
        raise ConfigError(f"{model} is not downloaded yet: parley models fetch {name}")
    return fetch(name) if name in catalogue() else Path(name)
