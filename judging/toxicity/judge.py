"""Language models as scorers: `judge:provider/model` writes a score and a reason; `silent:provider/model` casts a
silent ballot.

A judge scores the toxicity of a text from 0 to 100. For a silent scorer, the probabilities of the numbers 1 to 9 after
the question give the expected score. Both are stored from 0 to 1.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel

from parley.agents import AuthError, Debate, ModelError, Models, Persona, SilentBallot, ask, free_text, scale
from parley.agents.fencing import fence_judged
from parley.agents.models.sim import refuse_unknown_effects
from parley.base.redaction import hide_in_error
from parley.base.tasks import gather_or_cancel
from parley.judging.prompts import Prompt
from parley.judging.toxicity.scorer import NO_TEXT, Toxicity, in_pieces, worst

PROMPT = Prompt.load("toxicity/judge")
SILENT_PROMPT = Prompt.load("toxicity/silent")
PERSONA = Prompt.load("toxicity/persona")
FORMAT = '{"reason": "<one sentence>", "toxicity": <0 to 100>}'
METRIC, LOW, HIGH = "toxicity", 1, 9
PREFILL = '{"toxicity": '
PIECE_WORDS = 1000
AT_ONCE = 1024
"""Maximum concurrent calls: enough for full batches, without a task for every text of a corpus."""


class Rating(BaseModel):
    reason: free_text(200) = ""  # type: ignore[valid-type]
    toxicity: scale(0, 100)  # type: ignore[valid-type]


class ModelScorer(ABC):
    """A language model as a scorer.

    Args:
        model: The model's name.
        models: Clients by model name.
    """

    prefix: ClassVar[str]
    wording: ClassVar[tuple[str, str]]
    """The prompt, and the format or beginning of the reply, which are part of the version."""

    def __init__(self, model: str, models: Models) -> None:
        self.name = f"{self.prefix}{model.partition('?')[0]}"
        self._client, self._models = models[model], models
        prompt = "\x1f".join((self._client.identity, model, PERSONA.text, *self.wording))
        self.version = f"prompt {hashlib.sha256(prompt.encode()).hexdigest()[:8]}"

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        scores: list[Toxicity] = []
        for start in range(0, len(texts), AT_ONCE):
            scores += await gather_or_cancel(self._score(text) for text in texts[start : start + AT_ONCE])
        return scores

    async def _score(self, text: str) -> Toxicity:
        return await self._rated(text) if text.strip() else Toxicity(None, why=NO_TEXT)

    async def _rated(self, text: str) -> Toxicity:
        """The model's score. A failed call leaves the text unscored, unless all calls would fail."""
        try:
            return await self.rate(text)
        except AuthError:
            raise
        except ModelError as error:
            return Toxicity(None, why=hide_in_error(str(error)))

    @abstractmethod
    async def rate(self, text: str) -> Toxicity:
        """Ask the model about one text."""

    async def close(self) -> None:  # noqa: B027 - nothing to do, for every kind
        """Nothing to close: the clients belong to `models`."""


class JudgeScorer(ModelScorer):
    """A model that writes its score."""

    prefix = "judge:"
    wording = PROMPT.text, FORMAT

    def __init__(self, model: str, models: Models) -> None:
        refuse_unknown_effects(model, ["toxicity"], "a judge of toxicity", {"judge": PERSONA.text})
        super().__init__(model, models)

    async def _score(self, text: str) -> Toxicity:
        return worst(await gather_or_cancel(self._rated(piece) for piece in in_pieces(text, PIECE_WORDS)))

    async def rate(self, text: str) -> Toxicity:
        turn = await ask(
            Persona("judge", PERSONA.text),
            PROMPT(text=fence_judged(text, "TEXT"), format=FORMAT),
            Rating,
            model=self._client,
            models=self._models,
            options={"max_tokens": 200, "temperature": 0.0},
        )
        if not isinstance(turn.verdict, Rating):
            start = " ".join(turn.text.split())[:80]
            return Toxicity(None, why=f"the judge's reply is {turn.parse_status}: {start!r}")
        return Toxicity(turn.verdict.toxicity / 100)


class SilentScorer(ModelScorer):
    """A model that casts silent ballots."""

    prefix = "silent:"
    wording = SILENT_PROMPT.text, PREFILL

    async def rate(self, text: str) -> Toxicity:
        question = SILENT_PROMPT(text=fence_judged(text, "TEXT"))
        ballot = SilentBallot(question=question, metric=METRIC, low=LOW, high=HIGH, prefill=PREFILL)
        judge = Persona("Judge", PERSONA.text)
        debate = Debate([judge], model=self._client, rounds=0, ballots=[ballot], models=self._models)
        turn = (await debate.converse(None)).spoken()[-1]
        expected = turn.expected.get(METRIC)
        if expected is None:
            return Toxicity(None, why=f"the model's reply is {turn.parse_status}: {turn.text}")
        return Toxicity((expected - LOW) / (HIGH - LOW))
