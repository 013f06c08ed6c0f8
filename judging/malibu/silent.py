"""MALIBU's silent ballots: their units, wordings and results.

A judge sees a situation, an answer and a label, and answers with a number (phase 1), or sees two answers and says
which is better (phase 2, in both orders). Graded responses are scored without labels (phase 3).

The wording of the label changes a difference between identities more than the base does: over eight wordings it had a
standard deviation of 0.02 to 0.10 points, where the standard error over bases was 0.003 to 0.016. So every base gets
its own label wording, the same for its scenarios and for all identities of a category; the test over bases then covers
both.

The yardstick shows whether a judge's scores measure quality: graded responses, without labels, are a good response
and the same with one stated flaw in two doses. `full` reads every text; `brief` is for small models and a first look:
two severe flaws on a few bases.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import product
from typing import Any

from parley.agents import Persona, SilentBallot, seed_from
from parley.base.errors import ConfigError
from parley.base.text import plural
from parley.judging.ballots import PREFERRED
from parley.judging.malibu.plan import GRADED, SILENT, MalibuCell, sides
from parley.judging.rubric.rubrics import Metric
from parley.scenarios import Identities, Scenario, Suite
from parley.scenarios import Yardstick as Mode
from parley.scenarios.ballot_texts import TAG, BallotWordings, LabelWording, QuestionWording
from parley.scenarios.label_choice import LabelChoice

OVERALL = "Overall"
LOWEST, HIGHEST = 1, 9
"""The scale of scores."""
Text = tuple[str, int]
"""Key of a graded response: kind of flaw and dose."""
GOOD: Text = ("", 0)
BRIEF_BASES = 8
NO_LABELS = Identities({})
BRIEF_TEXTS: Collection[Text] = (GOOD, ("safety", 2), ("figure", 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedOrder:
    """The graded responses to a scenario, by kind of flaw and dose."""

    texts: Mapping[Text, str]
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class GradedTexts:
    """The graded responses to score.

    Args:
        orders: By base.
        sources: The hash of their sets, by name; empty if there are none.
    """

    orders: Mapping[str, GradedOrder]
    sources: dict[str, str]


def yardstick(suite: Suite, mode: Mode | None, *, bases: int | None, preferred: Collection[str]) -> GradedTexts:
    """The graded responses that a run's judges score.

    Args:
        suite: The suite with the graded responses; the run may be on a part of it.
        mode: The part to read; None for all, if the suite has graded responses.
        bases: Number of bases (default: those of the run; in `brief` 8, as a small run has too few of its own).
        preferred: Bases to prefer: those of the run.
    """
    if mode not in (None, "off") and not suite.graded:
        raise ConfigError(f"--yardstick {mode}: {suite.name} has no graded responses; it needs tables [[graded]]")
    if bases is not None and mode == "off":
        raise ConfigError("--yardstick-bases needs a yardstick: --yardstick full or brief")
    ordered = sorted(suite.graded, key=lambda graded: graded.base not in preferred)  # stable: the suite's order
    preferred_count = sum(graded.base in preferred for graded in ordered)
    sets = [] if mode == "off" else ordered[: bases or (BRIEF_BASES if mode == "brief" else preferred_count)]
    if bases is not None and len(sets) < bases:
        raise ConfigError(f"{suite.name} has graded responses for {plural(len(sets), 'base')}, not {bases}")
    scenarios, orders = {scenario.id: scenario for scenario in suite.scenario}, {}
    for graded in sets:
        texts: dict[Text, str] = {GOOD: graded.good, **{(flaw.kind, flaw.dose): flaw.text for flaw in graded.flaw}}
        read = {text: words for text, words in texts.items() if mode != "brief" or text in BRIEF_TEXTS}
        orders[graded.base] = GradedOrder(scenario=scenarios[graded.scenario], texts=read)
    digest = suite.model_copy(update={"graded": tuple(sets)}).graded_digest()
    return GradedTexts(orders, {f"graded responses of {suite.name} {suite.version}": digest} if orders else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class BallotSettings:
    """Settings of silent ballots.

    Args:
        metrics: The metrics to ask about one by one; empty for one overall question.
        ties: Whether a pair may be called a tie.
        assignments: Whether a pair is judged with both assignments of label to response, or one drawn by the seed.
        samples: Number of replies of a model without log-probabilities.
        labels_after: Whether labels come only after the answer, so that models read the beginning of a prompt once.
        seed: The run's seed.
    """

    metrics: tuple[Metric, ...] = ()
    ties: bool = False
    assignments: bool = False
    samples: int = 5
    labels_after: bool = False
    seed: int = 0


class SilentBallots:
    """The silent ballots of a run.

    Args:
        wordings: The words.
        settings: The ballots' settings.
        identities: The labels of the run.
        scenarios: The scenarios.
        placebo: Labels without meaning, read on one scenario of each base.
    """

    def __init__(
        self,
        wordings: BallotWordings,
        settings: BallotSettings,
        *,
        identities: Identities,
        scenarios: Sequence[Scenario],
        placebo: Identities = NO_LABELS,
    ) -> None:
        self._choice = LabelChoice.of(wordings, identities)
        self.wordings, self.settings, self.identities = self._choice.wordings, settings, identities
        self.placebo = placebo
        shown = (*self.wordings.label, *(wordings.placebo if placebo.categories else ()))
        self.wordings = self.wordings.model_copy(update={"label": shown})
        bases = list(dict.fromkeys(scenario.base or scenario.id for scenario in scenarios))
        self._with_placebo = {
            min((each for each in scenarios if (each.base or each.id) == base), key=self._mentions_placebo).id
            for base in (bases if placebo.categories else ())
        }
        random.Random(seed_from("bases", settings.seed)).shuffle(bases)
        self._places = {base: place for place, base in enumerate(bases)}
        of_placebo = LabelChoice(self.wordings.model_copy(update={"label": wordings.placebo}), placebo)
        self._labels = {
            category: self._shuffled_labels(choice, category)
            for choice in (self._choice, of_placebo)
            for category in choice.identities.categories
        }
        questions = list(wordings.question)
        random.Random(seed_from("questions", settings.seed)).shuffle(questions)
        self._questions = questions
        self._by_id = {label.id: label for label in self.wordings.label}

    @property
    def wordings_per_category(self) -> int:
        """The smallest number of label wordings of any category but placebos."""
        return min(len(self._labels[category]) for category in self.identities.categories)

    @property
    def judge(self) -> Persona:
        """The neutral judge."""
        return Persona("Judge", self.wordings.prompt.judge)

    def _mentions_placebo(self, scenario: Scenario) -> bool:
        """Whether a scenario speaks of one of the weekdays, which would give it a meaning."""
        return any(label in text for label in self.placebo for text in (scenario.text, *scenario.responses))

    def _shuffled_labels(self, choice: LabelChoice, category: str) -> list[LabelWording]:
        labels = list(choice.labels_for(category))
        if self.settings.labels_after:
            labels = [label for label in labels if label.place == "after"]
        if not labels:
            raise ConfigError(f"{self.wordings.name} has no label wording for {category} after the answer")
        random.Random(seed_from("label wordings", self.settings.seed, category)).shuffle(labels)
        return labels

    def prompts(self) -> dict[str, str]:
        """All texts of the prompts, by name."""
        words = self.wordings
        parts = {f"prompt/{key}": text for key, text in words.prompt.model_dump().items()}
        parts |= {f"talk/{key}": text for key, text in words.talk.model_dump().items()}
        for question in words.question:
            parts |= {
                f"question/{question.id}/{key}": text for key, text in question.model_dump(exclude={"id"}).items()
            }
        return parts | {f"label/{label.id}": label.text for label in words.label}

    def sources(self) -> dict[str, str]:
        """The hash of the wordings and of the forms of the user's labels."""
        words = self.wordings
        listed = {label: forms for label, forms in words.identity.items() if TAG in forms}
        shared = {label: forms for label, forms in words.identity.items() if label not in listed}
        shipped = {f"wordings {words.name} {words.version}": words.model_copy(update={"identity": shared}).digest()}
        if not listed:
            return shipped
        return shipped | {"list of the labels' forms": sha256(json.dumps(listed).encode()).hexdigest()}

    def about_own_labels(self, *, in_full: bool) -> Iterator[str]:
        """Notes on the number of wordings for the user's labels.

        Args:
            in_full: Whether to say what the other wordings need, and to show a few.
        """
        for category in filter(self.identities.is_own, self.identities.categories):
            lines = self._choice.lines(category, self._labels[category])
            if self.settings.labels_after:
                lines[0] += f", {len(self._labels[category])} of them in this run (after the answer)"
            yield from lines if in_full else [f"{lines[0]}; --dry-run shows some and says what the others need"]

    def cautions(self) -> Iterator[str]:
        """Cautions on categories whose bases share a label wording."""
        fitting, bases = " after the answer" if self.settings.labels_after else "", len(self._places)
        for category, labels in self._labels.items():
            if len(labels) < bases:
                # Fewer than 10 question wordings are taken as fixed (analysis/clusters.py).
                few = 10 <= len(self._questions) < len(labels)
                over, write = (f"{len(self._questions)} question wordings", " of both") if few else ("wordings", "")
                yield (
                    f"{plural(len(labels), 'label wording')} of {self.wordings.name} for {category}{fitting} repeat "
                    f"over {bases} bases, so the report tests over {over}; write {bases}{write}"
                )

    def label_wording(self, base: str, category: str) -> LabelWording:
        """The label wording of a base."""
        labels = self._labels[category]
        return labels[self._places[base] % len(labels)]

    def question(self, base: str, category: str = "") -> QuestionWording:
        """The question wording of a base; graded responses of a base that is not in the run get the first.

        Each base has its own if there are enough. With more bases, each label wording has one question, so that both
        are independent together.

        Args:
            base: The base.
            category: The category of the labels; "" for none.
        """
        place = self._places.get(base, 0)
        if len(self._places) > len(self._questions):
            place %= len(self._labels.get(category, self._places))
        return self._questions[place % len(self._questions)]

    def singles(self, scenario: Scenario, *, controls: bool, placebo: bool = False) -> Iterator[MalibuCell]:
        """One cell per label; with controls, also one without a label; with placebo, these on one scenario a base."""
        extra = self.placebo.categories if placebo and scenario.id in self._with_placebo else {}
        for category, labels in {**self.identities.categories, **extra}.items():
            wording = self.label_wording(scenario.base or scenario.id, category)
            for label in labels:
                yield self._cell(1, scenario, wording, category=category, identity=label)
        if controls:
            yield self._cell(1, scenario, control="no label")

    def pairs(self, scenario: Scenario) -> Iterator[MalibuCell]:
        """Two cells per pair of labels, one in each order; four with both assignments of label to response."""
        for x, y in self.identities.pairs():
            category = self.identities.category_of(x)
            wording = self.label_wording(scenario.base or scenario.id, category)
            drawn = seed_from("assignment", self.settings.seed, scenario.id, x, y) % 2
            for assignment in (0, 1) if self.settings.assignments else (drawn,):
                for order in (0, 1):
                    yield self._cell(2, scenario, wording, category=category, **sides(x, y, assignment, order))

    def graded(self, order: GradedOrder) -> Iterator[MalibuCell]:
        """One cell per graded response to a scenario."""
        for flaw, dose in order.texts:
            yield self._cell(GRADED, order.scenario, flaw=flaw, dose=dose)

    def _cell(
        self, phase: int, scenario: Scenario, wording: LabelWording | None = None, category: str = "", **more: Any
    ) -> MalibuCell:
        base = scenario.base or scenario.id
        return MalibuCell(
            phase=phase,
            stage=SILENT,
            scenario=scenario.id,
            base=base,
            repeat=0,
            wording=wording.id if wording else "",
            question=self.question(base, category).id,
            scale=f"{LOWEST}-{HIGHEST}",
            category=category,
            **more,
        )

    @cached_property
    def label_words(self) -> Mapping[str, str]:
        """The words and phrases that stand for a label; for a placebo whole wordings, as scenarios name weekdays."""
        words: dict[str, set[str]] = {}
        for label in self.identities:
            for word in self.wordings.forms(label).values():
                words.setdefault(word.lower(), set()).add(label)
        for category, labels in self.placebo.categories.items():
            for wording, label in product(self._labels[category], labels):
                words[self.wordings.label_text(wording, label).lower()] = {label}
        return {word: labels.pop() for word, labels in words.items() if len(labels) == 1}

    def ballots(self, cell: MalibuCell, texts: Sequence[str], situation: str) -> list[SilentBallot]:
        """A cell's ballots: one, or one per metric.

        Args:
            cell: A cell of these ballots, or of a debate that begins with them.
            texts: The response, or the two responses in the order in which they are shown.
            situation: The situation that they answer.
        """
        settings, prompt = self.settings, self.wordings.prompt
        if len(texts) == 2:
            return [
                SilentBallot(
                    question=self.pair_prompt(cell, texts, situation),
                    metric=PREFERRED,
                    choices=("A", "B", prompt.tie) if settings.ties else ("A", "B"),
                    prefill=prompt.prefill_pair,
                    samples=settings.samples,
                )
            ]
        return [
            SilentBallot(
                question=self.single_prompt(cell, texts[0], situation, metric=metric),
                metric=metric.name if metric else OVERALL,
                low=LOWEST,
                high=HIGHEST,
                prefill=prompt.prefill,
                samples=settings.samples,
            )
            for metric in settings.metrics or (None,)
        ]

    def single_prompt(
        self,
        cell: MalibuCell,
        text: str,
        situation: str,
        ask: str | None = None,
        metric: Metric | None = None,
    ) -> str:
        """The prompt about one answer.

        Args:
            cell: The cell.
            text: The response.
            situation: The situation.
            ask: The debate's question, in place of the cell's question wording.
            metric: The metric to ask about; None for the answer as a whole.
        """
        return self.wordings.single(
            situation=situation,
            answer=text,
            label=self._by_id.get(cell.wording or ""),
            identity=cell.identity,
            question=ask or self.wordings.question_by_id(cell.question or ""),
            low=LOWEST,
            high=HIGHEST,
            metric=(metric.name, " ".join(metric.questions)) if metric else None,
        )

    def pair_prompt(self, cell: MalibuCell, texts: Sequence[str], situation: str, ask: str | None = None) -> str:
        """The prompt about two answers; takes the arguments of `single_prompt`."""
        wording = self._by_id.get(cell.wording or "")
        first, second = cell.labels if wording else ("", "")
        return self.wordings.pair(
            situation=situation,
            answers=(texts[0], texts[1]),
            label=wording,
            identities=(first, second),
            question=ask or self.wordings.question_by_id(cell.question or ""),
            ties=self.settings.ties,
        )
