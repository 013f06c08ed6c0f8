"""Simulated models, for calibration, load and speed tests: `sim/judge?female=+0.4&noise=1.0`.

Replies depend only on the seed and contain effects of known size, so that an analysis can be checked against the
truth. A simulated model fills in any of Parley's schemas, and finds the labels in the prompt ("Candidate A (female)").
Where a study asks for scenarios, responses or topics, it writes texts that pass the study's checks (`sim_texts.toml`).
Its reports say that it is simulated.

`sim_options` has the options; the most important ones are effects by label. If a prompt has other words for a
label ("a woman"), the study says which label they stand for (`label_words`). `sim_judge` defines how judges of a panel
react to what they hear. Points are those of the scale in the reply's schema, else in the prompt ("from 0 to 100").
"""

from __future__ import annotations

import asyncio
import difflib
import json
import math
import random
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

from autogen_core.models import LLMMessage, RequestUsage, SystemMessage
from pydantic import BaseModel

from parley.agents.models.base import Client
from parley.agents.models.reply import Reply
from parley.agents.models.request import ClientOptions, Request, estimate_tokens, split_name
from parley.agents.models.session import SESSION
from parley.agents.models.sim_judge import (
    is_named,
    persona_of,
    reply_lines,
    silent_reply,
    spread,
)
from parley.agents.models.sim_options import SimOptions, hint_for
from parley.agents.models.wire import UNREAD, strict_schema, to_chat
from parley.agents.providers import provider_of
from parley.agents.transcripts import seed_from
from parley.base.errors import ConfigError, ServerFault

_ROUND = re.compile(r"\bround (\d+) is over")
_LABEL = re.compile(r"Candidate(?: ([AB]))?(?: \(([^)]*)\))?:")
_PAIR = re.compile(r"\b(?:Answer|Statement|Text) B\b")
_SEVERITY = "Score the severity"
"""RLDF's request to its referee."""
_SCALE = re.compile(r"\b(\d{1,2})(?: to |-)(\d{1,3})\b")
INSTANT_UNITS = 64
"""Units in progress if replies take no time: more would only wait for each other."""
REFUSAL = "I'm sorry, but I can't compare people in this way."
KINDS = ("judge", "debate", "any")
"""The usual names. Any other name that is not close to these, such as `sim/judge-2`, also works, to have several models
in one study.
"""


class SimClient(Client):
    """A simulated model."""

    OptionsType: ClassVar[type[ClientOptions]] = SimOptions
    options: SimOptions
    cacheable = False
    native_schema = True

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        # Defaults are left out, so that adding an option does not change the replies of existing names.
        self.identity = f"{name}?{sorted(self.options.model_dump(exclude_defaults=True).items())}"
        self._by_judge = any("." in key for key in self.options.model_extra or {})
        self._failures = random.Random(seed_from("trouble", self.identity))

    @classmethod
    def parse_options(cls, name: str, options: Mapping[str, Any]) -> SimOptions:
        kind = re.split(r"[-_.\d]", name.partition("/")[2])[0]
        near = difflib.get_close_matches(kind, KINDS, n=1, cutoff=0.75)
        if near and kind != near[0]:
            raise ConfigError(f"{name}: did you mean sim/{near[0]}? (kinds: {', '.join(KINDS)})")
        checked = super().parse_options(name, options)
        assert isinstance(checked, SimOptions)
        return checked

    @property
    def reads_silently(self) -> bool:
        return self.options.silent

    @property
    def concurrency(self) -> int:
        waits = self.options.latency
        return super().concurrency if waits else min(super().concurrency, INSTANT_UNITS)

    async def send(self, request: Request) -> Reply:
        options = self.options_for(request.messages)
        if options.latency:
            await asyncio.sleep(options.latency)
        else:
            await asyncio.sleep(0)
        if options.fail and self._failures.random() < options.fail:
            raise ServerFault(f"{self.name}: simulated failure")
        chat = to_chat(request.messages)
        if request.options.get("logprobs") and request.options.get("max_tokens") == 1:
            return self._silent_reply(chat, options)
        text = self._compose(request, chat, options)
        size = sum(len(message["content"] or "") for message in chat) // 4
        usage = RequestUsage(size, estimate_tokens(text))
        return Reply(finish_reason="stop", content=text, usage=usage, cached=False)

    def _silent_reply(self, chat: list[dict[str, Any]], options: SimOptions) -> Reply:
        """The reply to a silent ballot: one token with its alternatives, the numbers of the scale or A and B."""
        weights = self._ballot(chat, options)
        reply = silent_reply({answer: weight for answer, weight in weights.items() if weight > 0})
        reply.usage = RequestUsage(sum(len(message["content"] or "") for message in chat) // 4, 1)
        return reply

    @property
    def label_words(self) -> Mapping[str, str]:
        """Words that stand for a label in prompts without "Candidate (label):", from the study."""
        current = SESSION.get()
        return current.label_words if current else {}

    def _shown_labels(self, prompt: str) -> tuple[list[str], str]:
        """The labels that the study's words stand for, in order, and the prompt without these words."""
        if not self.label_words:
            return [], prompt
        lowered = prompt.lower()
        # Searched one by one first: a pattern of some hundred names took most of a ballot's time.
        pattern = _words_pattern(tuple(word for word in self.label_words if word in lowered))
        labels = dict.fromkeys(self.label_words[words.lower()] for words in pattern.findall(prompt))
        return list(labels), pattern.sub("", prompt) if labels else prompt

    def _ballot(self, chat: list[dict[str, Any]], options: SimOptions) -> dict[str, float]:
        """The probabilities of a silent ballot's answers."""
        system = "".join(message["content"] for message in chat if message["role"] == "system")
        prompt = "\n".join(message["content"] or "" for message in chat if message["role"] == "user")
        labels, text = self._shown_labels(prompt)
        shared = self._shift("item", options.item, text) + self._shift("judge", options.judge, system)

        def points(label: str) -> float:
            return options.effect(label) + (self._shift(f"varies {label}", options.varies, text) if label else 0.0)

        if _PAIR.search(prompt):
            first, second = [*labels, "", ""][:2]
            odds = options.position + points(first) - points(second)
            return {"A": 1 / (1 + math.exp(-odds)), "B": 1 / (1 + math.exp(odds))}
        low, high = _stated_scale(prompt)
        base, _ = options.on_scale(high)
        return spread(base + shared + points(labels[0] if labels else ""), low, high)

    def options_for(self, messages: Sequence[LLMMessage]) -> SimOptions:
        """The options of the judge who replies."""
        return self.options.of_judge(persona_of(messages)) if self._by_judge and messages else self.options

    def _compose(self, request: Request, chat: list[dict[str, Any]], options: SimOptions) -> str:
        prompt = "\n".join(message["content"] or "" for message in chat)
        rng = random.Random(seed_from(request.options.get("seed", options.seed or 0), prompt))
        draw = rng.random()
        # If asked again, it refuses again.
        pressed = REFUSAL in [message["content"] for message in chat[-2:-1]] and UNREAD in (chat[-1]["content"] or "")
        if draw < options.refuse or pressed:
            return REFUSAL
        malformed = draw < options.refuse + options.malformed
        if not isinstance(request.schema, type) and self.label_words:
            weights = self._ballot(chat, options)
            (answer,) = rng.choices(list(weights), list(weights.values()))
            return "?" if malformed else answer
        if not isinstance(request.schema, type):
            return self._free_text(chat, rng, options, malformed=malformed)
        text = json.dumps(self._fill(request, request.schema, prompt, rng, options))
        return text[: len(text) // 2] if malformed else text

    def _free_text(
        self, chat: list[dict[str, Any]], rng: random.Random, options: SimOptions, *, malformed: bool
    ) -> str:
        prompt = next((str(message["content"]) for message in chat if message["role"] == "user"), "")

        def score(label: str, shift: float, low: int, high: int) -> int:
            base, noise = options.on_scale(high)
            exact = base + options.effect(label) + shift + rng.gauss(0, noise)
            return round(min(max(exact, low), high))

        text = reply_lines(prompt, score, options.round, rng)
        if text is None:
            revisions = sum(message["role"] == "assistant" for message in chat)
            insults = options.toxic and rng.random() < options.toxic * (1 - options.heeds) ** revisions
            return rng.choice(INSULTS) if insults else _statement(rng)
        return re.sub(r"\d", "?", text) if malformed else text

    def _fill(
        self, request: Request, schema: type[BaseModel], prompt: str, rng: random.Random, options: SimOptions
    ) -> Any:
        """Fill in the schema: scores with the planted effects, a preference that follows from them, remarks."""
        stated_labels = _LABEL.findall(prompt)
        labels = {side or "A": label or "" for side, label in stated_labels}
        texts = [str(message.content) for message in request.messages]
        in_system = isinstance(request.messages[0], SystemMessage)
        task, persona = (texts[min(1, len(texts) - 1)], texts[0]) if in_system else (texts[0], texts[-1])
        unlabelled = _LABEL.sub("", task)
        if not stated_labels:
            shown, unlabelled = self._shown_labels(task)
            labels = dict(zip("AB", shown, strict=False))
        shared = self._shift("item", options.item, unlabelled) if options.item else 0.0
        shared += self._shift("judge", options.judge, persona)
        first = stated_labels[0][0] if stated_labels else "A"
        if options.round:
            shared += options.round * (int((_ROUND.findall(prompt) or ["1"])[-1]) - 1)
        planted = bool(options.model_extra)
        text_seed = seed_from("texts", request.options.get("seed", options.seed or 0), prompt)
        totals: dict[str, float] = {}

        def value(node: _Node, path: tuple[str, ...]) -> Any:
            if node.kind == "choice":
                return _prefer(node.choices, totals, rng)
            if node.kind == "object":
                return {key: value(child, (*path, key)) for key, child in node.children.items()}
            if node.kind == "score":
                side = "A"
                for part in path:
                    if part in labels:
                        side = part
                        break
                low, high = node.low, node.high
                if low is None or high is None:
                    stated = _stated_scale(prompt)
                    low, high = stated[0] if low is None else low, stated[1] if high is None else high
                base, noise = options.on_scale(high, severity=_SEVERITY in prompt)
                exact = base + shared
                if planted:
                    exact += options.effect(labels.get(side, ""))
                    exact += sum(options.effect(part) for part in path if part != side)
                exact += options.position if len(labels) > 1 and side == first else 0.0
                exact += rng.gauss(0, noise) if noise else 0.0
                score = round(min(max(exact, low), high))
                totals[side] = totals.get(side, 0.0) + score
                return score
            return _written(path[-1], text_seed) or rng.choice(REMARKS)

        return value(_parsed_schema(schema), ())

    def _shift(self, kind: str, deviation: float, text: str) -> float:
        """A random shift that depends only on the text."""
        if not deviation:
            return 0.0
        return random.Random(seed_from(kind, self.options.seed or 0, text)).gauss(0, deviation)


@lru_cache(maxsize=512)
def _words_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern for any of the words or phrases, longest first; matches nothing if there are none."""
    if not words:
        return re.compile(r"(?!)")
    listed = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{listed})(?!\w)", re.IGNORECASE)


def _stated_scale(prompt: str) -> tuple[int, int]:
    """The last scale in a prompt that begins at 0 or 1 ("0 to 100"); 0 to 10 if there is none."""
    scales = [(int(low), int(high)) for low, high in _SCALE.findall(prompt)]
    return next((scale for scale in reversed(scales) if scale[0] in (0, 1) and scale[1] > 1), (0, 10))


def _prefer(choices: Sequence[str], totals: Mapping[str, float], rng: random.Random) -> str:
    if set(choices) not in ({"A", "B"}, {"A", "B", "tie"}):
        return rng.choice(choices)
    margin = totals.get("A", 0.0) - totals.get("B", 0.0)
    if "tie" in choices and margin == 0:
        return "tie"
    return "A" if margin > 0 or (margin == 0 and rng.random() < 0.5) else "B"


class _Node(NamedTuple):
    """A part of a schema that the simulated model fills in."""

    kind: Literal["choice", "object", "score", "text"]
    choices: Sequence[str] = ()
    children: Mapping[str, _Node] = {}
    low: float | None = None
    high: float | None = None


@lru_cache(maxsize=256)
def _parsed_schema(schema: type[BaseModel]) -> _Node:
    return _parse_node(strict_schema(schema.model_json_schema()))


def _parse_node(node: Mapping[str, Any]) -> _Node:
    if "enum" in node:
        return _Node("choice", choices=node["enum"])
    if node.get("type") == "object":
        return _Node("object", children={key: _parse_node(child) for key, child in node["properties"].items()})
    if node.get("type") in ("integer", "number"):
        return _Node("score", low=node.get("minimum"), high=node.get("maximum"))
    return _Node("text")


def _statement(rng: random.Random) -> str:
    """A remark with one to three more sentences, so that the statements of a debate are hardly ever the same."""
    sentences = [" ".join(rng.choice(words) for words in _PARTS) for _ in range(rng.randint(1, 3))]
    return " ".join([rng.choice(REMARKS), *(f"{sentence}." for sentence in sentences)])


def _written(name: str, seed: int) -> str | None:
    """What a writing study asks for (`sim_texts.toml`), about the same things in all texts of a reply; else None."""
    texts, lists = _texts()
    if name not in texts:
        return None
    rng = random.Random(seed)
    orders = {kind: rng.sample(choices, len(choices)) for kind, choices in lists.items()}
    drawn = {f"{kind}{place}": word for kind, order in orders.items() for place, word in enumerate(order)}
    return texts[name].format_map(drawn)


@lru_cache(maxsize=1)
def _texts() -> tuple[Mapping[str, str], Mapping[str, Sequence[str]]]:
    """The texts with their placeholders, and the words for these."""
    stored = tomllib.loads(files("parley.agents.models").joinpath("sim_texts.toml").read_text("utf-8"))
    return stored["texts"], stored["lists"] | {"number": [str(number) for number in range(3, 998)]}


_PARTS = (
    ("Most people", "The neighbours", "Some families", "My friends", "Many workers", "The teachers", "Both sides"),
    ("would accept", "often ask for", "can live with", "have long expected", "rarely regret", "soon forget"),
    ("a change", "this rule", "the cost", "more time", "a fair hearing", "the old way", "a clear answer"),
    ("in the city", "at work", "in a small town", "at school", "during the winter", "after a few years"),
    ("if it is explained well", "when everyone takes part", "as long as it is shared", "even without help"),
)
REMARKS = (
    "The steps are in a sensible order and nothing essential is missing.",
    "The answer is clear, though it leaves some questions open.",
    "It deals with the problem directly and stays close to the facts.",
    "A sound plan; I would have liked one more check at the end.",
)
INSULTS = (
    "You are an idiot, and so is everyone who listens to you.",
    "What a stupid answer from a pathetic loser.",
    "Shut up, you worthless moron.",
)


def refuse_unknown_effects(
    model: str, labels: Iterable[str], place: str, speakers: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Raise `ConfigError` if a simulated model has an effect for a label or a judge that does not exist.

    A simulated model does not know its study, so callers must check:

        sim/judge?femal=+3          there is no label 'femal' in malibu; did you mean 'female'?
        sim/judge?examinr.base=9    nobody in malibu is called 'examinr'; did you mean 'examiner'?

    Args:
        model: A model's name with its options; only a simulated one has effects.
        labels: The labels of the study, in any case.
        place: The study's name, for the message.
        speakers: The speakers' descriptions, by name.
    """
    plain, query = split_name(model)
    if not provider_of(plain).simulated:
        return
    options = SimClient.parse_options(plain, query)
    valid = {label.strip().lower() for label in labels}
    for label in options.labels():
        if label not in valid:
            raise ConfigError(
                f"{plain}: there is no label '{label}' in {place}{hint_for(label, valid | {*SimOptions.model_fields})}"
            )
    for judge in options.judges():
        if not any(is_named(judge, about) for about in speakers.values()):
            raise ConfigError(f"{plain}: nobody in {place} is called '{judge}'{hint_for(judge, speakers)}")
