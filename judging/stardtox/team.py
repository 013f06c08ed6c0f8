"""STARDTOX's evaluators: a TOML file has the evaluators, their measures, and the coordinator's criteria.

    team = load_team("mine.toml").without(["performance"]).asking(["toxicity < 0.05"])

`thresholds_of` gives `parley detox` the measured thresholds of a team's scorers, in place of the paper's 0.1.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, Field, create_model, model_validator

from parley.agents import (
    Assessment,
    ConfigError,
    Evaluator,
    Models,
    Persona,
    Transcript,
    Unscored,
    ask,
    free_text,
    scale,
)
from parley.agents.evaluation import Criterion, ScoreFunction, scores_of
from parley.agents.fencing import fence_judged
from parley.agents.personas import ModelName
from parley.agents.providers import provider_of
from parley.judging import Prompt, Verdict
from parley.judging.config import NO_MEASURE, load
from parley.judging.toxicity import Scorer as ToxicityScorer
from parley.judging.toxicity import find_scorer
from parley.judging.toxicity.scorer import measured_thresholds

JUDGE = Prompt.load("stardtox/judge")
SHUFFLED = "shuffled"
"""Evaluator and metric of a judge's score of a draft's words in random order; the subject is the metric that is scored.
A judge that tells fluent text from shuffled words gives it less than the draft."""
MIN_SHUFFLED = 4
"""Minimum number of words to shuffle."""
OUTSIDE = "outside_toxicity"
"""Evaluator and score of the outside measure, which has no criterion and is hidden from the generator."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_RULE = re.compile(r"\s*(\w+)\s*([<>]=?.*)")


class ToxicityAssessment(Assessment):
    """A toxicity from 0 to 1, with the scorer's name and version, and its score before any correction."""

    scorer: str
    raw: float | None = None


class EvaluatorSpec(BaseModel, extra="forbid", frozen=True):
    """One evaluator of a team's file: a scorer, or an LLM judge.

    Args:
        name: Its name in transcripts and verdicts.
        scorer: The toxicity scorer, for an evaluator that is not a judge.
        about: The judge's persona.
        metrics: The judge's metrics, each with the question to score from 0 to 100.
        model: The judge's model, if it differs from the others'.
        criteria: The coordinator's threshold for each score, as "< 0.1".
    """

    name: Name
    scorer: ModelName | None = None
    about: str | None = None
    metrics: dict[Name, str] = {}
    model: ModelName | None = None
    criteria: dict[str, str] = {}

    @model_validator(mode="after")
    def _is_one_thing(self) -> EvaluatorSpec:
        if (self.scorer is None) == (self.about is None):
            raise ValueError(f"evaluator '{self.name}' needs either a scorer, or an LLM judge's about and metrics")
        if (self.about is None) != (not self.metrics):
            raise ValueError(f"evaluator '{self.name}': a judge needs at least one metric, and a scorer has none")
        if "reason" in self.metrics:
            raise ValueError(f"evaluator '{self.name}': 'reason' cannot be a metric")
        for score in self.criteria:
            if score not in self.scores:
                raise ValueError(
                    f"evaluator '{self.name}' gives no score '{score}' (it gives: {', '.join(self.scores)})"
                )
        return self

    @property
    def scores(self) -> tuple[str, ...]:
        """The names of its scores."""
        return tuple(self.metrics) or (self.name,)

    def reply_type(self) -> type[BaseModel]:
        """The type that a judge's reply is parsed as."""
        fields: dict[str, Any] = {name: (scale(0, 100), ...) for name in self.metrics}
        return create_model(f"{self.name}_reply", **fields, reason=(free_text(240), ""))

    def prompt(self, template: Prompt = JUDGE) -> str:
        """The judge's prompt, with {task} and {draft} left open."""
        scores = ", ".join(f'"{name}": <0 to 100>' for name in self.metrics)
        listed = "\n".join(f"- {name}: {question}" for name, question in self.metrics.items())
        json_format = f'{{{scores}, "reason": "<one sentence>"}}'
        return template(metrics=_escaped(listed), format=_escaped(json_format), task="{task}", draft="{draft}")


def _escaped(text: str) -> str:
    """Escape braces for `str.format`."""
    return text.replace("{", "{{").replace("}", "}}")


class _TeamFile(BaseModel, extra="forbid", frozen=True):
    evaluator: Annotated[tuple[EvaluatorSpec, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Team:
    """The evaluators of a critique loop.

    Args:
        evaluators: The evaluators.
        criteria: The coordinator's threshold for each score, as "< 0.1".
    """

    evaluators: tuple[EvaluatorSpec, ...]
    criteria: Mapping[str, str] = field(default_factory=dict)

    def without(self, names: Sequence[str]) -> Team:
        """The team without some evaluators and their criteria."""
        removed = {score for name in names for score in self[name].scores}
        evaluators = tuple(spec for spec in self.evaluators if spec.name not in names)
        return Team(evaluators, {score: rule for score, rule in self.criteria.items() if score not in removed})

    def with_scorer(self, scorer: str | None) -> Team:
        """The team with another scorer; unchanged if `scorer` is None."""
        if scorer is None:
            return self
        if not any(spec.scorer for spec in self.evaluators):
            raise ConfigError("the team has no evaluator with a scorer to replace")
        swapped = [spec.model_copy(update={"scorer": scorer}) if spec.scorer else spec for spec in self.evaluators]
        return Team(tuple(swapped), self.criteria)

    def measured_by(self, scorer: str) -> Team:
        """The team with an outside measure: a scorer that the loop does not use. Unchanged if `scorer` is `none`."""
        if scorer == NO_MEASURE:
            return self
        if scorer in [spec.scorer for spec in self.evaluators]:
            raise ConfigError(f"--measure {scorer}: the loop uses this scorer itself; choose another one, or none")
        return Team((*self.evaluators, EvaluatorSpec(name=OUTSIDE, scorer=scorer)), self.criteria)

    def asking(self, rules: Sequence[str]) -> Team:
        """The team with other thresholds, as "toxicity < 0.05"."""
        criteria = dict(self.criteria)
        scores = [score for spec in self.evaluators for score in spec.scores]
        for rule in rules:
            parts = _RULE.fullmatch(rule)
            if parts is None or parts.group(1) not in scores:
                raise ConfigError(
                    f"a criterion must look like 'toxicity < 0.1', got '{rule}' (scores: {', '.join(scores)})"
                )
            Criterion.read(parts.group(2))
            criteria[parts.group(1)] = parts.group(2)
        return Team(self.evaluators, criteria)

    def __getitem__(self, name: str) -> EvaluatorSpec:
        for spec in self.evaluators:
            if spec.name == name:
                return spec
        names = ", ".join(spec.name for spec in self.evaluators)
        raise ConfigError(f"the team has no evaluator '{name}' (known: {names})")

    @property
    def judges(self) -> list[EvaluatorSpec]:
        """The evaluators that are LLM judges."""
        return [spec for spec in self.evaluators if spec.about]

    def prompts(self) -> dict[str, str]:
        """The judges' prompts and personas, by name."""
        texts = {f"evaluator/{spec.name}": spec.prompt() for spec in self.judges}
        return texts | {f"persona/{spec.name}": str(spec.about) for spec in self.judges}

    def models(self) -> list[str]:
        """The models of judges and scorers that have their own."""
        models = [spec.model for spec in self.evaluators if spec.model]
        scorers = [spec.scorer for spec in self.evaluators if spec.scorer]
        return models + [name.removeprefix("judge:") for name in scorers if name.startswith("judge:")]

    def scorers(self, models: Models) -> dict[str, ToxicityScorer]:
        """The toxicity scorers, by the name of their evaluator; they are shared through `models`."""
        return {
            spec.name: models.share(f"scorer/{spec.scorer}", partial(find_scorer, spec.scorer, models))
            for spec in self.evaluators
            if spec.scorer
        }

    def check_scorers(self) -> None:
        """Fail before any call is made if a scorer is not installed or has no key."""
        for spec in self.evaluators:
            if spec.scorer:
                find_scorer(spec.scorer, Models())

    def seat(
        self,
        models: Models,
        judge: str,
        options: Mapping[str, Any],
        template: Prompt | None = None,
        *,
        shuffles: Callable[[str], bool] | None = None,
    ) -> dict[str, Evaluator | ScoreFunction]:
        """The evaluators of one loop, by name.

        Args:
            models: Clients by model name; scorers are shared through it.
            judge: The model of judges without their own.
            options: Options of the judges' calls.
            template: The judges' prompt (default: the shipped one).
            shuffles: Which drafts' words the first judge also scores in random order, unless it is simulated.
        """
        scorers = self.scorers(models)
        evaluators: dict[str, Evaluator | ScoreFunction] = {}
        for spec in self.evaluators:
            if spec.name in scorers:
                evaluators[spec.name] = toxicity_of(scorers[spec.name])
            else:
                persona = Persona(spec.name, str(spec.about), spec.model or judge)
                evaluators[spec.name] = Evaluator(persona, spec.reply_type(), spec.prompt(template or JUDGE), options)
        if shuffles and self.judges and not provider_of(self.judges[0].model or judge).simulated:
            spec = self.judges[0]
            evaluators[SHUFFLED] = shuffled(evaluators[spec.name], spec.scores[0], models, shuffles)
        return evaluators

    def verdicts(self, transcript: Transcript) -> Iterator[Verdict]:
        """Every score of every iteration, readable or not. A refused draft has no score."""
        refused = {turn.round for turn in transcript.spoken("generator") if turn.parse_status == "refused"}
        for turn in transcript.spoken("evaluator"):
            if turn.speaker == SHUFFLED:
                value = scores_of(SHUFFLED, turn.verdict).get(SHUFFLED)
                yield Verdict.from_turn(turn, SHUFFLED, subject=self.judges[0].scores[0], value=value, sampled=value)
                continue
            lost = turn.round in refused
            spec = self[turn.speaker]
            values = scores_of(spec.name, turn.verdict)
            assessment = turn.verdict if isinstance(turn.verdict, ToxicityAssessment) else None
            text = str(getattr(turn.verdict, "reason", "")) if turn.verdict else turn.text if spec.scorer else None
            for score in spec.scores:
                value = None if lost else values.get(score)
                yield Verdict(
                    judge=assessment.scorer if assessment else spec.scorer or spec.name,
                    role=turn.role,
                    round=turn.round,
                    metric=score,
                    value=value,
                    sampled=assessment.raw if assessment and not lost else value,
                    text=text,
                    status="refused" if lost else turn.parse_status or "unparsed",
                    turn=turn,
                )


def load_team(name: str = "stardtox") -> Team:
    """Load a team.

    Args:
        name: `stardtox`, or a path to a .toml file.
    """
    file = load(_TeamFile, "team", name, ("stardtox",), "stardtox/team.toml")
    names = [spec.name for spec in file.evaluator]
    scores = [score for spec in file.evaluator for score in spec.scores]
    if len(set(names)) < len(names) or len(set(scores)) < len(scores):
        raise ConfigError(f"{name}: evaluators and their scores need different names")
    if taken := {"coordinator", "generator", OUTSIDE, SHUFFLED} & {evaluator.lower() for evaluator in names}:
        raise ConfigError(f"{name}: an evaluator cannot be called '{taken.pop()}'")
    criteria = [f"{score} {rule}" for spec in file.evaluator for score, rule in spec.criteria.items()]
    return Team(file.evaluator).asking(criteria)


def shuffled(judge: Any, score: str, models: Models, shuffles: Callable[[str], bool]) -> ScoreFunction:
    """A judge's score of a draft's words in random order, as an evaluator."""

    async def evaluate(task: str, draft: str) -> Assessment | Unscored:
        words = draft.split()
        if len(words) < MIN_SHUFFLED or not shuffles(draft):
            return Unscored("its words are not shuffled")
        random.Random(draft).shuffle(words)
        prompt = judge.prompt.format(task=task, draft=fence_judged(" ".join(words), "DRAFT"))
        turn = await ask(judge.agent, prompt, judge.reply_type, models=models, options=judge.options)
        value = scores_of(score, turn.verdict).get(score)
        return Unscored("no readable score") if value is None else Assessment(score=value, reason=" ".join(words))

    return evaluate


def toxicity_of(scorer: ToxicityScorer) -> ScoreFunction:
    """A toxicity scorer as an evaluator. A text it cannot score is unscored, never 0."""

    async def evaluate(task: str, draft: str) -> Assessment | Unscored:
        (toxicity,) = await scorer.score([draft])
        if toxicity.score is None:
            return Unscored(toxicity.why or f"{scorer.name} gave no score")
        strongest = sorted(toxicity.labels, key=lambda label: -label[1])[:3]
        listed = ", ".join(f"{label} {value:.2f}" for label, value in strongest)
        reason = "Toxicity from 0 to 1, by a classifier." + (f" Strongest: {listed}." if listed else "")
        name = f"{scorer.name} {scorer.version}"
        return ToxicityAssessment(score=toxicity.score, reason=reason, scorer=name, raw=toxicity.raw)

    return evaluate


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The measured thresholds of a team's scorers.

    Args:
        criteria: Criteria that replace the team's.
        toxic_from: By score, the value from which a text is revised; without an entry, the criterion decides.
        cautions: Cautions on the thresholds.
    """

    criteria: Sequence[str] = ()
    toxic_from: Mapping[str, float] = field(default_factory=dict)
    cautions: tuple[str, ...] = ()


def thresholds_of(team: Team, models: Models, *, chosen: Sequence[str]) -> Thresholds:
    """The thresholds of the scorers of the shipped team.

    Args:
        team: The team, perhaps with another scorer.
        models: Where its scorers are shared.
        chosen: Scores for which the user set a threshold.
    """
    criteria, toxic_from, cautions = [], {}, []
    for name, scorer in team.scorers(models).items():
        if name in chosen:
            continue
        measured = measured_thresholds().get(scorer.name)
        if measured is None:
            if name in team.criteria:
                cautions.append(
                    f"{scorer.name} has no measured threshold: it gets the paper's, {name} {team.criteria[name]}, "
                    "which was meant for Perspective (--criteria sets another)"
                )
            continue
        if measured.version != scorer.version:
            cautions.append(f"the thresholds of {scorer.name} were measured on its version {measured.version}")
        criteria.append(f"{name} < {measured.harmless_below:g}")
        toxic_from[name] = measured.toxic_from
    return Thresholds(criteria=criteria, toxic_from=toxic_from, cautions=tuple(cautions))
