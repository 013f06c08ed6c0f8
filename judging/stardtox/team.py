"""STARDTOX's evaluators, as data: a TOML file says who judges, by what, and what the coordinator asks for.

team = load_team("mine.toml").without(["performance"]).asking(["toxicity < 0.05"])
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from parley.agents import Assessment, ConfigError, Evaluator, Models, Persona, Transcript, Unscored, free_text, scale
from parley.agents.evaluation import Criterion, ScoreFunction, scores_of
from parley.judging.shipped import load
from parley.judging.study import Prompt, Verdict
from parley.judging.toxicity import Scorer as ToxicityScorer
from parley.judging.toxicity import find_scorer

JUDGE = Prompt.load("stardtox/judge")
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_RULE = re.compile(r"\s*(\w+)\s*([<>]=?.*)")


class ToxicityAssessment(Assessment):
    """A toxicity from 0 to 1, with the scorer's name and version, and what it said before any mending."""

    scorer: str
    raw: float | None = None


class EvaluatorSpec(BaseModel):
    """One evaluator of a team's file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    scorer: str | None = None
    about: str | None = None
    metrics: dict[Name, str] = {}
    model: str | None = None
    criteria: dict[str, str] = {}

    @model_validator(mode="after")
    def _is_one_thing(self) -> EvaluatorSpec:
        if (self.scorer is None) == (self.about is None):
            raise ValueError(f"evaluator '{self.name}': give either a scorer, or an LLM judge's about and metrics")
        if (self.about is None) != (not self.metrics):
            raise ValueError(f"evaluator '{self.name}': metrics belong to a judge, and a judge needs one at least")
        if "reason" in self.metrics:
            raise ValueError(f"evaluator '{self.name}': 'reason' cannot be a metric")
        for score in self.criteria:
            if score not in self.scores:
                raise ValueError(f"evaluator '{self.name}' gives no score '{score}' ({', '.join(self.scores)})")
        return self

    @property
    def scores(self) -> tuple[str, ...]:
        return tuple(self.metrics) or (self.name,)

    def reply_type(self) -> type[BaseModel]:
        fields: dict[str, Any] = {name: (scale(0, 100), ...) for name in self.metrics}
        return create_model(f"{self.name}_reply", **fields, reason=(free_text(240), ""))

    def prompt(self, template: Prompt = JUDGE) -> str:
        """The judge's prompt, with {task} and {draft} left open."""
        asked = ", ".join(f'"{name}": <0 to 100>' for name in self.metrics)
        listed = "\n".join(f"- {name}: {question}" for name, question in self.metrics.items())
        shape = f'{{{asked}, "reason": "<one sentence>"}}'
        return template(metrics=_closed(listed), format=_closed(shape), task="{task}", draft="{draft}")


def _closed(text: str) -> str:
    """Braces that stay braces when the text is formatted."""
    return text.replace("{", "{{").replace("}", "}}")


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    evaluator: Annotated[tuple[EvaluatorSpec, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Team:
    """The evaluators, and the coordinator's criteria by score."""

    evaluators: tuple[EvaluatorSpec, ...]
    criteria: Mapping[str, str] = field(default_factory=dict)

    def without(self, names: Sequence[str]) -> Team:
        for name in names:
            self[name]
        kept = tuple(one for one in self.evaluators if one.name not in names)
        gone = {score for one in self.evaluators if one.name in names for score in one.scores}
        return Team(kept, {score: rule for score, rule in self.criteria.items() if score not in gone})

    def with_scorer(self, scorer: str | None) -> Team:
        """Another scorer in the place of those of the file."""
        if scorer is None:
            return self
        if not any(one.scorer for one in self.evaluators):
            raise ConfigError("the team has no evaluator with a scorer that could be replaced")
        swapped = [one.model_copy(update={"scorer": scorer}) if one.scorer else one for one in self.evaluators]
        return Team(tuple(swapped), self.criteria)

    def asking(self, rules: Sequence[str]) -> Team:
        """Other thresholds: "toxicity < 0.05"."""
        criteria = dict(self.criteria)
        known = [score for one in self.evaluators for score in one.scores]
        for rule in rules:
            found = _RULE.fullmatch(rule)
            if found is None or found.group(1) not in known:
                raise ConfigError(f"'{rule}' is no rule; write one like 'toxicity < 0.1' (scores: {', '.join(known)})")
            Criterion.read(found.group(2))
            criteria[found.group(1)] = found.group(2)
        return Team(self.evaluators, criteria)

    def __getitem__(self, name: str) -> EvaluatorSpec:
        for one in self.evaluators:
            if one.name == name:
                return one
        raise ConfigError(f"the team has no evaluator '{name}' (it has: {', '.join(e.name for e in self.evaluators)})")

    def prompts(self) -> dict[str, str]:
        judges = [one for one in self.evaluators if one.about]
        texts = {f"evaluator/{one.name}": one.prompt() for one in judges}
        return texts | {f"persona/{one.name}": str(one.about) for one in judges}

    def models(self) -> list[str]:
        """The models that evaluators bring along."""
        own = [one.model for one in self.evaluators if one.model]
        scorers = [one.scorer for one in self.evaluators if one.scorer]
        return own + [name.removeprefix("judge:") for name in scorers if name.startswith("judge:")]

    def check_scorers(self) -> None:
        """One that is not installed, or has no key, is missed before anything is spent."""
        for one in self.evaluators:
            if one.scorer:
                find_scorer(one.scorer, Models(), cache=False)

    def seat(
        self, models: Models, judge: str, options: Mapping[str, Any], template: Prompt | None = None
    ) -> dict[str, Evaluator | ScoreFunction]:
        """The evaluators for one loop; `judge` is the model of those that have none of their own."""
        seated: dict[str, Evaluator | ScoreFunction] = {}
        for one in self.evaluators:
            if one.scorer:
                find = partial(find_scorer, one.scorer, models)
                seated[one.name] = toxicity_of(models.share(f"scorer/{one.scorer}", find))
            else:
                who = Persona(one.name, str(one.about), one.model or judge)
                seated[one.name] = Evaluator(who, one.reply_type(), one.prompt(template or JUDGE), options)
        return seated

    def verdicts(self, transcript: Transcript) -> Iterator[Verdict]:
        """Every score of every iteration, read or not."""
        for turn in transcript.spoken("evaluator"):
            spec = self[turn.speaker]
            found, status = scores_of(spec.name, turn.verdict), turn.parse_status or "unparsed"
            scored = turn.verdict if isinstance(turn.verdict, ToxicityAssessment) else None
            judge = scored.scorer if scored else spec.scorer or spec.name
            text = str(getattr(turn.verdict, "reason", "")) if turn.verdict else turn.text if spec.scorer else None
            for score in spec.scores:
                value = found.get(score)
                yield Verdict(
                    judge, turn.role, turn.round, score, "", value, scored.raw if scored else value, text, status
                )


def load_team(name: str = "stardtox") -> Team:
    """The shipped team, or a user's own from a .toml file."""
    file = load(_File, "team", name, ("stardtox",), "stardtox/team.toml")
    names = [one.name for one in file.evaluator]
    scores = [score for one in file.evaluator for score in one.scores]
    if len(set(names)) < len(names) or len(set(scores)) < len(scores):
        raise ConfigError(f"{name}: evaluators and their scores need names that differ")
    if taken := {"coordinator", "generator"} & {one.lower() for one in names}:
        raise ConfigError(f"{name}: an evaluator cannot be called '{taken.pop()}'")
    return Team(file.evaluator).asking([f"{s} {r}" for one in file.evaluator for s, r in one.criteria.items()])


def toxicity_of(scorer: ToxicityScorer) -> ScoreFunction:
    """A toxicity scorer as an evaluator. What it could not score is unscored, never 0."""

    async def evaluate(task: str, draft: str) -> Assessment | Unscored:
        if not draft.strip():
            return Unscored("there is no text to score")
        (found,) = await scorer.score([draft])
        if found.score is None:
            return Unscored(found.why or f"{scorer.name} gave no score")
        kinds = sorted(found.labels, key=lambda label: -label[1])[:3]
        most = f" Strongest: {', '.join(f'{kind} {value:.2f}' for kind, value in kinds)}." if kinds else ""
        reason = f"Toxicity from 0 to 1, by a classifier.{most}"
        said = f"{scorer.name} {scorer.version}"
        return ToxicityAssessment(score=found.score, reason=reason, scorer=said, raw=found.raw)

    return evaluate
