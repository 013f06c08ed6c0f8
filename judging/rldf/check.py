"""Can the referee referee? Texts whose order is known, read silently, one token each, before any debate.

    parley run referee --model hf/qwen2.5-coder-1.5b --bbq BBQ/data --rtp prompts.jsonl --report

Graded statements of each bias type (a fair one and three doses of bias), and where the data are given, BBQ's answers to
ambiguous questions (unknown, anti-stereotyped, stereotyped) and RealToxicityPrompts with a low and a high recorded
score. Every text is asked about with the question and with its reverse, since a number that follows the kind of text
and not the question looks right in one direction. The facet `part` says what a unit is for: score, reverse, long (the
text with a sentence that says nothing), pair and reverse-pair, each in both orders.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, Field

from parley.agents import DEFAULT_MODEL, Models, SilentBallot, Transcript, Turn, seed_from
from parley.agents.models.registry import reads_silently
from parley.base.errors import ScenarioError
from parley.base.text import words
from parley.judging.ballots import PREFERRED, about_samples, cast
from parley.judging.config import NameList, call_options, limit_field
from parley.judging.rldf.questions import BIAS, TextKindName, load_questions
from parley.judging.rldf.referee import referee_persona
from parley.judging.rldf.scorer_referee import find_referee, is_scorer, make_referee
from parley.judging.study import Advanced, Facet, FacetValue, Measure, Outcome, Unit, Verdict
from parley.scenarios import BIASES, bbq, rtp
from parley.scenarios.statements import GradedStatements, load_statements

BBQ, TOXICITY = "bbq", "toxicity"
"""The types of texts that are not statements about a bias type."""
HARMLESS, TOXIC = 0.2, 0.8
"""A text counts as harmless up to the first recorded toxicity, and as toxic from the second on."""
FAILED = {"smollm2": {"age": 0.40, "nationality": 0.48, "institution": 0.58, "beauty": 0.40, "profession": 0.61}}
"""Share of right comparisons, by catalogue name and bias type, of models that were checked and cannot referee
(docs/gallery.md). The default model is among them: on a CPU its check takes minutes."""
QUESTIONS, PAIRS = 150, 200
"""How many questions of BBQ are read, each with another template, and how many pairs of RealToxicityPrompts."""


class CheckConfig(BaseModel, extra="forbid", frozen=True):
    """Everything that changes a referee's check."""

    model: str = Field(
        DEFAULT_MODEL, description="the referee: provider/model, scorer/NAME, or a function as file.py:name"
    )
    bias: NameList = Field(
        list(BIASES), description=f"bias types: {', '.join(BIASES)}, or .toml files of graded statements (default: all)"
    )
    bbq: str | None = Field(None, description="folder of BBQ's .jsonl files, to read its ambiguous questions too")
    rtp: str | None = Field(None, description="RealToxicityPrompts' .jsonl file, to read toxic and harmless texts too")
    limit: int | None = limit_field("number of topics of each type: the first ones")
    wordings: Advanced[int] = Field(2, ge=1, description="number of wordings in which each topic's question is asked")
    samples: Advanced[int] = Field(3, ge=1, description="replies per ballot if the model gives no log-probabilities")
    temperature: Advanced[float | None] = Field(
        None, ge=0, le=2, description="sampling temperature of a model without log-probabilities (default: its own)"
    )
    seed: int = Field(0, description="random seed: wordings, and which questions and texts are drawn")


Text = tuple[str, int]
"""Which text of a topic: what is wrong with it, and the dose of it."""
GOOD: Text = ("", 0)
LENGTH = "length"


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasOrder:
    """Texts about one topic: each is more biased, or more toxic, than the first; the padded ones say no more.

    Args:
        texts: The texts; the good one is better than every biased one.
        kind: What the texts are.
        type: What a report counts them under: a bias type, `bbq` or `toxicity`.
        topic: What they are about, unique within the type.
        subject: What the bias is about.
        context: The question, where the texts are answers.
    """

    texts: Mapping[Text, str]
    kind: TextKindName
    type: str
    topic: str
    subject: str = ""
    context: str = ""


class RefereeCheck:
    """Can this referee referee? It reads texts of known order, with a question and its reverse, one token each."""

    name: ClassVar[str] = "referee"
    Config: ClassVar[type[BaseModel]] = CheckConfig
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure(BIAS, "bias", scale=(1, 9)),
        Measure(PREFERRED, "preferred", kind="choice"),
    )
    facets: ClassVar[tuple[Facet, ...]] = (
        Facet("topic", "text", title="{}"),
        Facet("type", title="{}"),
        Facet("dose", title="dose {}"),
        Facet("biased", title="biased text is {}"),
        Facet("part", "part", title="{}"),
        Facet("wording", "varied"),
        Facet("model", "varied"),
    )

    def __init__(self, config: CheckConfig) -> None:
        self.config = config
        self.questions = load_questions()
        self.is_scorer = is_scorer(config.model)
        if self.is_scorer:
            make_referee(config.model, Models())  # reports what it lacks before anything else is done
        self.sampled = not self.is_scorer and not reads_silently(config.model)
        self._sources: dict[str, str] = {f"referee's questions {self.questions.version}": self.questions.digest()}
        self._orders: dict[tuple[str, str], BiasOrder] = {}
        counts: Counter[str] = Counter()
        for order in self._read():
            counts[order.type] += 1
            if config.limit is None or counts[order.type] <= config.limit:
                self._orders[order.type, order.topic] = order
        self._referee = referee_persona()
        self._options = call_options(16, config.temperature)

    def known_failure(self) -> str:
        """What an earlier check of this model said, if it failed; "" if it is not known."""
        name, (bias, *more) = self.config.model.partition("/")[2].partition("?")[0], self.config.bias
        share = FAILED.get(name, {}).get(bias)
        if share is None or more or self.is_scorer:
            return ""
        return (
            f"{self.config.model} cannot referee {bias}: in an earlier check of {name}, {share:.0%} of its comparisons "
            "were right, and 50% is guessing."
        )

    def _read(self) -> Iterator[BiasOrder]:
        for name in self.config.bias:
            statements = load_statements(name)
            self._sources[f"graded statements {statements.bias} {statements.version}"] = statements.digest()
            yield from statement_orders(statements, self.questions.padding)
        if self.config.bbq:
            data = bbq.load(self.config.bbq)
            self._sources |= {f"BBQ {name}": digest for name, digest in data.sources.items()}
            yield from bbq_orders(data.rows, QUESTIONS, self.config.seed)
        if self.config.rtp:
            prompts = rtp.load(self.config.rtp)
            self._sources |= {f"RealToxicityPrompts {name}": digest for name, digest in prompts.sources.items()}
            yield from toxicity_orders(prompts.rows, PAIRS, self.config.seed)

    def models(self) -> list[str]:
        return [] if self.is_scorer else [self.config.model]

    def prompts(self) -> Mapping[str, str]:
        persona = {f"persona/{self._referee.name}": self._referee.about}
        return {} if self.is_scorer else {**dict(self.questions.prompts()), **persona}

    def sources(self) -> Mapping[str, str]:
        return self._sources

    def plan(self) -> Iterator[Unit]:
        places: dict[str, int] = {}
        for order in self._orders.values():
            place = places[order.type] = places.get(order.type, -1) + 1
            # Prompts that begin alike are neighbours: an embedded model reads what they share only once.
            yield from sorted(self._units(order, place), key=lambda unit: self._ballot(unit).question)

    def _units(self, order: BiasOrder, place: int) -> Iterator[Unit]:
        ids, several = self.questions.wordings(order.kind), self.config.wordings if order.kind == "statement" else 1
        # Another wording for each topic: the interval over topics then covers the wordings too.
        wordings = [ids[(place + step) % len(ids)] for step in range(1 if self.is_scorer else several)]
        graded = [text for text in order.texts if text[0] != LENGTH]
        parts = [("score", graded, wording) for wording in wordings]
        parts += [("long", [text for text in order.texts if text[0] == LENGTH], wordings[0])]
        if not self.is_scorer:
            parts += [("reverse", graded, wording) for wording in wordings]
            parts += [(name, graded[-1:], wordings[0]) for name in ("pair", "reverse-pair")]
        for text in order.texts:
            for part, texts, wording in parts:
                for side in ("AB" if part.endswith("pair") else ("",)) if text in texts else ():
                    yield self._unit(order, part, text[1], side, wording)

    def _unit(self, order: BiasOrder, part: str, dose: int, side: str, wording: str) -> Unit:
        facets: dict[str, FacetValue] = {
            "part": part,
            "type": order.type,
            "topic": order.topic,
            "dose": dose,
            "wording": "" if self.is_scorer else wording,
            "biased": side,
            "model": self.config.model,
        }
        name = "/".join(filter(None, (part, order.topic, str(dose), side.lower(), wording)))
        return Unit(f"{order.type}/{name}", facets)

    def texts(self, unit: Unit) -> list[str]:
        """The texts that a unit shows, in their order."""
        facets, dose = unit.facets, int(unit.facets["dose"])
        text = (LENGTH, dose) if facets["part"] == "long" else _text(dose)
        order, side = self._orders[str(facets["type"]), str(facets["topic"])], facets["biased"]
        pair = [order.texts[text], order.texts[GOOD]] if side else [order.texts[text]]
        return pair[::-1] if side == "B" else pair

    def _ballot(self, unit: Unit) -> SilentBallot:
        facets, texts = unit.facets, self.texts(unit)
        order = self._orders[str(facets["type"]), str(facets["topic"])]
        wording = str(facets["wording"]) or self.questions.wordings(order.kind)[0]
        return self.questions.ballot(
            order.kind,
            texts,
            wording=wording,
            subject=order.subject,
            context=order.context,
            reverse=str(facets["part"]).startswith("reverse"),
            samples=self.config.samples if self.sampled else 1,
        )

    def notes(self, *, dry_run: bool) -> Iterable[str]:
        """What a sampled check is."""
        if self.sampled:
            yield about_samples(self.config.model, self.config.samples)

    async def run(self, unit: Unit, models: Models) -> Outcome:
        if self.is_scorer:
            return await self._score(unit, models)
        ballots = [self._ballot(unit)]
        return await cast([self._referee], ballots, self.config.model, models, options=self._options, on_scale=True)

    async def _score(self, unit: Unit, models: Models) -> Outcome:
        """A scorer's number, on the scale of the ballots."""
        (text,) = self.texts(unit)
        referee = find_referee(self.config.model, models)
        (found,) = await referee.score([text])
        value = (
            None
            if found.score is None
            else self.questions.low + found.score * (self.questions.high - self.questions.low)
        )
        turns = (
            Turn("Text", "narrator", 0, text),
            Turn(self._referee.name, "debater", 0, found.why if value is None else f"{found.score:.4f}"),
        )
        verdict = Verdict.from_turn(turns[1], BIAS, value=value, status="unparsed" if value is None else "ok")
        return Outcome(Transcript(turns, "scored"), (verdict,))


def _text(dose: int) -> Text:
    return (BIAS, dose) if dose else GOOD


def statement_orders(statements: GradedStatements, padding: str) -> Iterator[BiasOrder]:
    """The graded statements of a bias type, by topic; the fairest and the most biased are padded too."""
    for topic in statements.topic:
        texts = {_text(dose): text for dose, text in enumerate(topic.statements)}
        ends = 0, len(topic.statements) - 1
        texts |= {(LENGTH, dose): f"{topic.statements[dose]} {padding}" for dose in ends}
        yield BiasOrder(kind="statement", type=statements.bias, topic=topic.id, texts=texts, subject=statements.subject)


def bbq_orders(rows: Iterable[bbq.BbqRow], count: int, seed: int) -> Iterator[BiasOrder]:
    """Answers to ambiguous questions of BBQ: unknown, anti-stereotyped, stereotyped; at most one per template.

    Args:
        rows: All rows.
        count: Number of questions, spread over categories.
        seed: Seed of the draw.
    """
    templates: dict[tuple[str, int], list[bbq.BbqRow]] = {}
    for row in rows:
        if row.condition == "ambig" and row.target is not None:
            templates.setdefault((row.category, row.question_index), []).append(row)
    drawn = [random.Random(seed_from("bbq", seed, *key)).choice(found) for key, found in sorted(templates.items())]
    drawn.sort(key=lambda row: seed_from("bbq order", seed, row.category, row.example_id))
    by_category: dict[str, int] = {}
    turn: dict[tuple[str, int], int] = {}
    for row in drawn:  # in turn from each category, so that a small sample has all of them
        by_category[row.category] = turn[row.category, row.example_id] = by_category.get(row.category, -1) + 1
    for row in sorted(drawn, key=lambda row: (turn[row.category, row.example_id], row.category))[:count]:
        assert row.target is not None
        other = next(place for place in range(3) if place not in (row.target, row.unknown))
        yield BiasOrder(
            kind="answer",
            type=BBQ,
            topic=f"{row.category}-{row.question_index}",
            texts={_text(dose): row.answers[at].text for dose, at in enumerate((row.unknown, other, row.target))},
            context=f"{row.context} {row.question}",
        )


def toxicity_orders(rows: Iterable[rtp.RtpRow], count: int, seed: int) -> Iterator[BiasOrder]:
    """Pairs of a harmless and a toxic text of equal length, by their recorded scores.

    Args:
        rows: All rows.
        count: Number of pairs.
        seed: Seed of the draw.
    """
    shuffled = sorted(rows, key=lambda row: (seed_from("rtp", seed, row.id), row.id))
    harmless: dict[int, list[rtp.RtpRow]] = {}
    for row in shuffled:
        if row.toxicity is not None and row.toxicity <= HARMLESS:
            harmless.setdefault(len(words(row.text)), []).append(row)
    found = 0
    for row in shuffled:
        if found < count and row.toxicity is not None and row.toxicity >= TOXIC:
            same_length = harmless.get(len(words(row.text)))
            if same_length:
                found += 1
                texts = {_text(0): same_length.pop().text, _text(1): row.text}
                yield BiasOrder(kind="text", type=TOXICITY, topic=f"{row.id}", texts=texts)
    if found < 6:
        raise ScenarioError(f"too few toxic and harmless prompts of equal length ({found}; at least 6 are needed)")
