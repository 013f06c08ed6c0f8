"""`silent:provider/model`: a language model's expected toxicity of a text, read from one token's probabilities.

Nothing is written: the probabilities of the numbers 1 to 9 after the question give the expected score, from 0 to 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from parley.agents import AuthError, Debate, ModelError, Models, Persona, SilentBallot
from parley.agents.fencing import fence_judged
from parley.base.redaction import hide_in_error
from parley.base.tasks import gather_or_cancel
from parley.judging.study import Prompt
from parley.judging.toxicity.scorer import NO_TEXT, Toxicity

PROMPT = Prompt.load("toxicity/silent")
PERSONA = Prompt.load("toxicity/persona")
METRIC, LOW, HIGH = "toxicity", 1, 9
PREFILL = '{"toxicity": '
AT_ONCE = 1024
"""Texts whose calls are open at the same time: enough for full batches, without a task for every text of a corpus."""


class SilentScorer:
    """A language model as a scorer that is never asked to write.

    Args:
        model: The model's name.
        models: Clients by model name.
    """

    def __init__(self, model: str, models: Models) -> None:
        self.name = f"silent:{model.partition('?')[0]}"
        self._client, self._models = models[model], models
        prompt = "\x1f".join((self._client.identity, model, PERSONA.text, PROMPT.text, PREFILL))
        self.version = f"prompt {hashlib.sha256(prompt.encode()).hexdigest()[:8]}"

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        scores: list[Toxicity] = []
        for start in range(0, len(texts), AT_ONCE):
            scores += await gather_or_cancel(self._score(text) for text in texts[start : start + AT_ONCE])
        return scores

    async def _score(self, text: str) -> Toxicity:
        if not text.strip():
            return Toxicity(None, why=NO_TEXT)
        question = PROMPT(text=fence_judged(text, "TEXT"))
        ballot = SilentBallot(question=question, metric=METRIC, low=LOW, high=HIGH, prefill=PREFILL)
        judge = Persona("Judge", PERSONA.text)
        debate = Debate([judge], model=self._client, rounds=0, ballots=[ballot], models=self._models)
        try:
            turn = (await debate.converse(None)).spoken()[-1]
        except AuthError:
            raise
        except ModelError as error:
            return Toxicity(None, why=hide_in_error(str(error)))
        expected = turn.expected.get(METRIC)
        if expected is None:
            return Toxicity(None, why=f"the model's reply is {turn.parse_status}")
        return Toxicity((expected - LOW) / (HIGH - LOW))

    async def close(self) -> None:
        """The clients belong to `models`, which closes them."""
