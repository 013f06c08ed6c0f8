"""Simulated models, for calibration, load and speed: `sim/judge?female=+0.4&noise=1.0`.

Deterministic by seed, with effects planted on purpose, so that an analysis can be checked against a known truth.
It answers any schema of ours by reading it, and finds the labels in the prompt as a judge would
("Candidate A (female)"). Every report on it says that it is simulated.

Options: an effect in points for any label (`female=+0.4`), `base` score, `noise` (standard deviation of one score),
`item` (of a shared shift per text, so that judges of one text agree), `judge` (of a shift per persona), `position`
(points for whoever stands first), `tie` (two totals closer than this are a tie), `round` (points for every round after
the first, as a referee is told it, or for every rephrasing: see `sim_lines`), `toxic` (the rate of free texts that
insult somebody) and `heeds` (the rate at which an insult is gone once the text is written again), `obeys` (the rate at
which an order for a score in the response that is judged is followed: see `sim_orders`) and `obeys_fenced` (the same
where the response is fenced; default: `obeys`), `latency` and `jitter` in seconds, and the rates `fail`, `malformed`,
`refuse` and `limited` (429).
"""

from __future__ import annotations

import asyncio
import difflib
import json
import math
import random
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from autogen_core.models import RequestUsage, SystemMessage
from pydantic import BaseModel, ConfigDict, Field, model_validator

from parley.agents.calls import seed_from
from parley.agents.errors import RateLimited, ServerFault
from parley.agents.models.base import Client, ClientOptions, Request, estimate_tokens
from parley.agents.models.reply import Reply
from parley.agents.models.sim_injection import find_order
from parley.agents.models.sim_lines import lines
from parley.agents.models.wire import to_chat

_ROUND = re.compile(r"\bround (\d+) is over")
_LABEL = re.compile(r"Candidate(?: ([AB]))?(?: \(([^)]*)\))?:")


class SimOptions(ClientOptions):
    model_config = ConfigDict(extra="allow", frozen=True)

    max_connections: int = Field(1024, ge=1)
    base: float = 7.0
    noise: float = Field(1.0, ge=0)
    item: float = Field(0.0, ge=0)
    judge: float = Field(0.0, ge=0)
    position: float = 0.0
    tie: float = Field(0.0, ge=0)
    round: float = 0.0
    toxic: float = Field(0.0, ge=0, le=1)
    heeds: float = Field(0.0, ge=0, le=1)
    obeys: float = Field(0.0, ge=0, le=1)
    obeys_fenced: float | None = Field(None, ge=0, le=1)
    latency: float = Field(0.0, ge=0)
    jitter: float = Field(0.0, ge=0)
    fail: float = Field(0.0, ge=0, le=1)
    malformed: float = Field(0.0, ge=0, le=1)
    refuse: float = Field(0.0, ge=0, le=1)
    limited: float = Field(0.0, ge=0, le=1)

    @model_validator(mode="before")
    @classmethod
    def _effects_are_numbers(cls, values: dict[str, Any]) -> dict[str, Any]:
        effects: dict[str, Any] = {}
        for key, value in values.items():
            if key in cls.model_fields:
                effects[key] = value
                continue
            if near := difflib.get_close_matches(key, cls.model_fields, n=1, cutoff=0.75):
                raise ValueError(f"'{key}' is no option of a simulated model; did you mean '{near[0]}'?")
            try:
                effects[key.lower()] = float(value)
            except ValueError:
                raise ValueError(f"the effect '{key}={value}' is not a number") from None
            if not math.isfinite(effects[key.lower()]):
                raise ValueError(f"the effect '{key}={value}' is not a finite number")
        return effects

    def effect(self, label: str) -> float:
        return float((self.model_extra or {}).get(label.strip().lower(), 0.0))


class SimClient(Client):
    OptionsType: ClassVar[type[ClientOptions]] = SimOptions
    options: SimOptions
    simulated = True
    cacheable = False
    native_schema = True

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        # Defaults are left out, so that a new option changes no draw of an old name.
        self.identity = f"{name}?{sorted(self.options.model_dump(exclude_defaults=True).items())}"
        self._trouble = random.Random(seed_from("trouble", self.identity))

    async def send(self, request: Request) -> Reply:
        wanted = self.options
        if wanted.latency or wanted.jitter:
            await asyncio.sleep(max(0.0, wanted.latency + wanted.jitter * self._trouble.uniform(-1, 1)))
        else:
            await asyncio.sleep(0)
        if wanted.limited and self._trouble.random() < wanted.limited:
            raise RateLimited(f"{self.name}: simulated 429", retry_after=0.01)
        if wanted.fail and self._trouble.random() < wanted.fail:
            raise ServerFault(f"{self.name}: simulated failure")
        chat = to_chat(request.messages)
        text = self._compose(request, chat)
        size = sum(len(message["content"] or "") for message in chat) // 4
        usage = RequestUsage(size, estimate_tokens(text))
        return Reply(finish_reason="stop", content=text, usage=usage, cached=False)

    def _compose(self, request: Request, chat: list[dict[str, Any]]) -> str:
        wanted = self.options
        whole = "\n".join(message["content"] or "" for message in chat)
        rng = random.Random(seed_from(request.options.get("seed", wanted.seed or 0), whole))
        fate = rng.random()
        if fate < wanted.refuse:
            return "I'm sorry, but I can't compare people in this way."
        if not isinstance(request.schema, type):
            return self._plain(chat, rng, malformed=fate < wanted.refuse + wanted.malformed)
        reply = self._fill(request, request.schema, whole, rng)
        text = json.dumps(reply)
        return text[: len(text) // 2] if fate < wanted.refuse + wanted.malformed else text

    def _plain(self, chat: list[dict[str, Any]], rng: random.Random, *, malformed: bool) -> str:
        wanted = self.options
        asked = next((str(one["content"]) for one in chat if one["role"] == "user"), "")

        def score(label: str, shift: float) -> int:
            exact = wanted.base + wanted.effect(label) + shift + rng.gauss(0, wanted.noise)
            return round(min(max(exact, 1), 10))

        text = lines(asked, score, wanted.round, rng)
        if text is None:
            again = sum(message["role"] == "assistant" for message in chat)
            insults = wanted.toxic and rng.random() < wanted.toxic * (1 - wanted.heeds) ** again
            return rng.choice(_INSULTS if insults else _REMARKS)
        return re.sub(r"\d", "?", text) if malformed else text

    def _fill(self, request: Request, schema: type[BaseModel], whole: str, rng: random.Random) -> Any:
        labels = {side or "A": label or "" for side, label in _LABEL.findall(whole)}
        texts = [str(message.content) for message in request.messages]
        in_system = isinstance(request.messages[0], SystemMessage)
        task, persona = (texts[min(1, len(texts) - 1)], texts[0]) if in_system else (texts[0], texts[-1])
        shared = self._shift("item", self.options.item, _LABEL.sub("", task))
        shared += self._shift("judge", self.options.judge, persona)
        first = next((side for side, _ in _LABEL.findall(whole)), "A")
        shared += self.options.round * (int((_ROUND.findall(whole) or ["1"])[-1]) - 1)
        order = self._order(task, rng)
        totals: dict[str, float] = {}
        scored: dict[str, int] = {}

        def value(node: Mapping[str, Any], path: tuple[str, ...]) -> Any:
            if "enum" in node:
                return self._prefer(node["enum"], totals, rng)
            if node.get("type") == "object":
                if _is_ranking(node):
                    return _ranks({key: scored.get(key, 0) for key in node["properties"]})
                return {key: value(child, (*path, key)) for key, child in node["properties"].items()}
            if node.get("type") in ("integer", "number"):
                side = next((part for part in path if part in labels), "A")
                exact = self.options.base + shared + self.options.effect(labels.get(side, ""))
                exact += sum(self.options.effect(part) for part in path if part != side)
                exact += self.options.position if len(labels) > 1 and side == first else 0.0
                exact += rng.gauss(0, self.options.noise) if self.options.noise else 0.0
                exact = exact if order is None else order
                score = round(min(max(exact, node.get("minimum", 0)), node.get("maximum", 10)))
                totals[side] = totals.get(side, 0.0) + score
                scored[path[-1]] = score
                return score
            return rng.choice(_REMARKS)

        return value(_resolved(schema), ())

    def _order(self, task: str, rng: random.Random) -> float | None:
        """The score that the response under judgement orders, where this reply obeys it."""
        if not self.options.obeys and not self.options.obeys_fenced:
            return None
        order = find_order(task)
        if order is None:
            return None
        fenced = order.fenced and self.options.obeys_fenced is not None
        rate = self.options.obeys_fenced if fenced else self.options.obeys
        return float(order.score) if rng.random() < (rate or 0.0) else None

    def _shift(self, what: str, deviation: float, text: str) -> float:
        if not deviation:
            return 0.0
        return random.Random(seed_from(what, self.options.seed or 0, text)).gauss(0, deviation)

    def _prefer(self, choices: list[str], totals: Mapping[str, float], rng: random.Random) -> str:
        if set(choices) not in ({"A", "B"}, {"A", "B", "tie"}):
            return rng.choice(choices)
        margin = totals.get("A", 0.0) - totals.get("B", 0.0)
        if "tie" in choices and abs(margin) <= self.options.tie:
            return "tie"
        return "A" if margin > 0 or (margin == 0 and rng.random() < 0.5) else "B"


def _is_ranking(node: Mapping[str, Any]) -> bool:
    """An object that asks for places 1 to n of its n keys."""
    places = [(child.get("minimum"), child.get("maximum")) for child in node["properties"].values()]
    return len(places) > 1 and set(places) == {(1, len(places))}


def _ranks(scores: Mapping[str, int]) -> dict[str, int]:
    """Place 1 for the highest score; equals in the order they stand."""
    return {name: at for at, name in enumerate(sorted(scores, key=lambda one: -scores[one]), 1)}


_RESOLVED: dict[type[BaseModel], dict[str, Any]] = {}


def _resolved(schema: type[BaseModel]) -> dict[str, Any]:
    from parley.agents.models.wire import strict_schema

    if schema not in _RESOLVED:
        _RESOLVED[schema] = strict_schema(schema.model_json_schema())
    return _RESOLVED[schema]


_REMARKS = (
    "The steps are in a sensible order and nothing essential is missing.",
    "The answer is clear, though it leaves some questions open.",
    "It deals with the problem directly and stays close to the facts.",
    "A sound plan; I would have liked one more check at the end.",
)
_INSULTS = (
    "You are an idiot, and so is everyone who listens to you.",
    "What a stupid answer from a pathetic loser.",
    "Shut up, you worthless moron.",
)
