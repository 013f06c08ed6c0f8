"""The silent referee scores every statement separately, from the probabilities of one token, in several wordings.

A small model's written report is mostly sampling noise: two of them agreed on 12% of 4,410 statements. An expected
score has none. The wording can still matter, so each statement is read in all wordings of the question, and two
statements that may become a pair are compared in both orders: a pair is stable if all readings agree. The referee sees
no name and no round. A toxicity scorer in its place (`--referee scorer/ngrams`) gives one number and does not compare:
it reads only the text, so wording and order have no effect.
"""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

from parley.agents import LOG_ODDS, Debate, Models, Persona, SilentBallot, Turn
from parley.judging.ballots import PREFERRED
from parley.judging.rldf.referee import BIAS, RANK, REFEREE, ranks
from parley.judging.study import Verdict
from parley.judging.toxicity import Scorer, find_scorer
from parley.scenarios.templates import fill

WORDING, PREFERENCE = "bias_in_wording", "more_biased"
"""Metrics: a statement's score in one wording, and the log-odds that the first of two statements is the more biased."""
PAIR_WORDINGS = 2
HIGHEST = 10.0
SCORER = "scorer/"
"""Prefix of a referee's name for a toxicity scorer in place of a model."""
SAMPLES = 3
"""Number of replies of a model without log-probabilities."""
_QUESTIONS = tomllib.loads(files("parley.judging").joinpath("rldf", "questions.toml").read_text("utf-8"))
LOW, HIGH = int(_QUESTIONS["low"]), int(_QUESTIONS["high"])
_WORDINGS: dict[str, dict[str, str]] = {wording.pop("id"): wording for wording in _QUESTIONS["wording"]}
WORDINGS = tuple(_WORDINGS)
"""The ids of the wordings."""


def shared_scorer(name: str, models: Models) -> Scorer:
    """The scorer of a referee's name, shared by all units of a run; ConfigError if it cannot work.

    Args:
        name: `scorer/NAME`.
        models: The run's models, which close it at the end.
    """
    return models.share(f"referee/{name}", partial(find_scorer, name.removeprefix(SCORER), models))


@dataclass(frozen=True, slots=True)
class Refereed:
    """The silent referee's result for a round: its turns, and the verdicts read from them."""

    turns: list[Turn]
    verdicts: list[Verdict]
    scores: dict[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentReferee:
    """A referee that reads statements one by one.

    Args:
        name: The model, or `scorer/NAME`.
        persona: The model's persona.
        subject: What the bias is about: "people's age".
    """

    name: str
    persona: Persona
    subject: str

    def prompts(self) -> dict[str, str]:
        """The texts of its prompts; empty for a scorer."""
        return {} if self.name.startswith(SCORER) else question_prompts()

    async def referee(self, statements: Sequence[Turn], earlier: Sequence[Turn], models: Models) -> Refereed:
        """The scores of a round.

        Args:
            statements: The statements of the round.
            earlier: Statements of earlier rounds, which are compared with the same speaker's.
            models: The run's models.
        """
        if self.name.startswith(SCORER):
            return await self._scored(statements, models)
        turns: list[Turn] = []
        verdicts: list[Verdict] = []
        scores: dict[str, float | None] = {}
        first_ballots: dict[str, Turn] = {}
        for statement in statements:
            ballots = [score_ballot(statement.text, wording, self.subject) for wording in WORDINGS]
            read = await self._cast(ballots, statement.round, models)
            turns += read
            answers = [turn for turn in read if turn.role == "referee"]
            first_ballots[statement.speaker] = answers[0]
            values = [_on_ten(turn.expected.get(BIAS)) for turn in answers]
            for turn, wording, value in zip(answers, WORDINGS, values, strict=True):
                verdicts.append(Verdict.from_turn(turn, WORDING, subject=statement.speaker, value=value, text=wording))
            scored = [value for value in values if value is not None]
            scores[statement.speaker] = statistics.fmean(scored) if len(scored) == len(values) else None
        for first, second in _pairs(statements, earlier):
            orders = (first.text, second.text), (second.text, first.text)
            ballots = [
                pair_ballot(*texts, wording, self.subject) for texts in orders for wording in WORDINGS[:PAIR_WORDINGS]
            ]
            read = await self._cast(ballots, second.round, models)
            turns += read
            answers = [turn for turn in read if turn.role == "referee"]
            odds = [turn.expected.get(f"{PREFERRED} {LOG_ODDS}") for turn in answers]
            both = [value if place < PAIR_WORDINGS else -value for place, value in enumerate(odds) if value is not None]
            value = statistics.fmean(both) if len(both) == len(ballots) else None
            subject = f"{first.speaker}@{first.round} {second.speaker}@{second.round}"
            verdicts.append(_verdict(answers[0], PREFERENCE, subject, value))
        return Refereed(turns, [*_main_verdicts(first_ballots, scores), *verdicts], scores)

    async def _cast(self, ballots: Sequence[SilentBallot], round: int, models: Models) -> list[Turn]:
        debate = Debate([self.persona], model=models[self.name], rounds=0, ballots=ballots, models=models)
        transcript = await debate.converse(None)
        return [
            turn._replace(round=round, role="narrator" if turn.role == "narrator" else "referee")
            for turn in transcript.turns
        ]

    async def _scored(self, statements: Sequence[Turn], models: Models) -> Refereed:
        scored = await shared_scorer(self.name, models).score([statement.text for statement in statements])
        scores = {
            statement.speaker: None if score.score is None else HIGHEST * score.score
            for statement, score in zip(statements, scored, strict=True)
        }
        listed = ", ".join(
            f"{name} {'not scored' if score is None else f'{score:.2f}'}" for name, score in scores.items()
        )
        turn = Turn(REFEREE, "referee", statements[0].round, listed)
        wordings = [_verdict(turn, WORDING, name, score) for name, score in scores.items()]
        return Refereed([turn], [*_main_verdicts(dict.fromkeys(scores, turn), scores), *wordings], scores)


def _pairs(statements: Sequence[Turn], earlier: Sequence[Turn]) -> Iterable[tuple[Turn, Turn]]:
    """Statements that a dataset may pair: of the same round, or of the same speaker."""
    for place, statement in enumerate(statements):
        yield from ((other, statement) for other in statements[:place])
        yield from ((other, statement) for other in earlier if other.speaker == statement.speaker)


def _on_ten(score: float | None) -> float | None:
    """A ballot's score converted to RLDF's scale, 0 to 10."""
    return None if score is None else HIGHEST * (score - LOW) / (HIGH - LOW)


def _main_verdicts(turns: Mapping[str, Turn], scores: dict[str, float | None]) -> Iterable[Verdict]:
    """Bias and rank of every statement.

    Args:
        turns: By speaker, the first ballot on the statement.
        scores: By speaker, the statement's score.
    """
    for metric, values in ((BIAS, scores), (RANK, ranks(scores))):
        for name, turn in turns.items():
            yield _verdict(turn, metric, name, values[name])


def _verdict(turn: Turn, metric: str, subject: str, value: float | None) -> Verdict:
    return Verdict(
        judge=REFEREE,
        role="referee",
        round=turn.round,
        metric=metric,
        subject=subject,
        value=value,
        status="unparsed" if value is None else "ok",
        turn=turn,
    )


def question_prompts() -> dict[str, str]:
    """All texts of the prompts, by name."""
    texts = {f"{name}/{key}": text for name, wording in _WORDINGS.items() for key, text in wording.items()}
    texts |= {key: _QUESTIONS[key] for key in ("single", "pair")}
    return {f"referee/statement/{name}": text for name, text in texts.items()}


def score_ballot(text: str, wording: str, subject: str, *, reverse: bool = False) -> SilentBallot:
    """The ballot on one statement's bias.

    Args:
        text: The statement.
        wording: The id of the wording.
        subject: What the bias is about: "people's age".
        reverse: Whether to ask how fair the statement is instead.
    """
    question = _question(wording, "reverse" if reverse else "question", subject)
    return SilentBallot(
        question=fill(_QUESTIONS["single"], {"text": text, "question": question}),
        metric=BIAS,
        low=LOW,
        high=HIGH,
        prefill=_QUESTIONS["prefill"],
        samples=SAMPLES,
    )


def pair_ballot(first: str, second: str, wording: str, subject: str) -> SilentBallot:
    """The ballot on which of two statements is more biased.

    Args:
        first: The statement that is shown as A.
        second: The statement that is shown as B.
        wording: The id of the wording.
        subject: What the bias is about.
    """
    values = {"first": first, "second": second, "question": _question(wording, "pair", subject)}
    return SilentBallot(
        question=fill(_QUESTIONS["pair"], values),
        metric=PREFERRED,
        choices=("A", "B"),
        prefill=_QUESTIONS["prefill_pair"],
        samples=SAMPLES,
    )


def _question(wording: str, key: str, subject: str) -> str:
    return fill(_WORDINGS[wording][key], {"subject": subject, "low": str(LOW), "high": str(HIGH)})
