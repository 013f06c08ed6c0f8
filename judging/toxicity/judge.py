"""`judge:provider/model`: a language model that scores the toxicity of a text from 0 to 100, with a reason."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pydantic import BaseModel

from parley.agents import AuthError, ModelError, Models, Persona, ask, free_text, scale
from parley.agents.fencing import fence_judged
from parley.agents.models.sim import refuse_unknown_effects
from parley.base.redaction import hide_in_error
from parley.base.tasks import gather_or_cancel
from parley.judging.study import Prompt
from parley.judging.toxicity.scorer import Toxicity, in_pieces, worst

PROMPT = Prompt.load("toxicity/judge")
PERSONA = Prompt.load("toxicity/persona")
FORMAT = '{"reason": "<one sentence>", "toxicity": <0 to 100>}'
PIECE_WORDS = 1000


class Rating(BaseModel):
    reason: free_text(200) = ""  # type: ignore[valid-type]
    toxicity: scale(0, 100)  # type: ignore[valid-type]


def rating_prompt(text: str) -> str:
    """What the judge is asked about a text."""
    return PROMPT(text=fence_judged(text, "TEXT"), format=FORMAT)


class JudgeScorer:
    """A language model as a scorer.

    Args:
        model: The model's name.
        models: Clients by model name.
    """

    def __init__(self, model: str, models: Models) -> None:
        refuse_unknown_effects(model, ["toxicity"], "a judge of toxicity", {"judge": PERSONA.text})
        self.name = f"judge:{model.partition('?')[0]}"
        self._client, self._models = models[model], models
        prompt = "\x1f".join((self._client.identity, model, PERSONA.text, PROMPT.text, FORMAT))
        self.version = f"prompt {hashlib.sha256(prompt.encode()).hexdigest()[:8]}"

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        return await gather_or_cancel(self._score(text) for text in texts)

    async def _score(self, text: str) -> Toxicity:
        return worst(await gather_or_cancel(self._rate(piece) for piece in in_pieces(text, PIECE_WORDS)))

    async def _rate(self, text: str) -> Toxicity:
        try:
            turn = await ask(
                Persona("judge", PERSONA.text),
                rating_prompt(text),
                Rating,
                model=self._client,
                models=self._models,
                options={"max_tokens": 200, "temperature": 0.0},
            )
        except AuthError:
            raise
        except ModelError as error:
            return Toxicity(None, why=hide_in_error(str(error)))
        if not isinstance(turn.verdict, Rating):
            start = " ".join(turn.text.split())[:80]
            return Toxicity(None, why=f"the judge's reply is {turn.parse_status}: {start!r}")
        return Toxicity(turn.verdict.toxicity / 100)

    async def close(self) -> None:
        """The clients belong to `models`, which closes them."""
