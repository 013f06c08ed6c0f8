"""`openai-moderation`: OpenAI's moderation endpoint, free of charge for holders of a key (OPENAI_API_KEY).

The score is the highest of harassment and hate, with or without threats: what the other scorers call toxic. All
categories (violence, sexual, self-harm …) are kept as labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from parley.judging.toxicity.remote import Remote
from parley.judging.toxicity.scorer import Toxicity

TOXIC = ("harassment", "harassment/threatening", "hate", "hate/threatening")


class OpenAIModeration(Remote):
    name = "openai-moderation"
    version = "omni-moderation-2024-09-26"  # dated: what "latest" means may change while old scores are kept
    key_variable: ClassVar[str] = "OPENAI_API_KEY"
    url_variable: ClassVar[str] = "OPENAI_BASE_URL"
    default_url: ClassVar[str] = "https://api.openai.com/v1"
    at_once: ClassVar[int] = 32

    async def ask(self, texts: Sequence[str]) -> list[Toxicity]:
        headers = {"Authorization": f"Bearer {self.key}"}
        reply = await self.post("/moderations", {"model": self.version, "input": list(texts)}, headers)
        try:
            scores = [
                {str(label): float(value) for label, value in one["category_scores"].items()}
                for one in reply["results"]
            ]
            found = [Toxicity(max(each[kind] for kind in TOXIC), labels=tuple(each.items())) for each in scores]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self.no_reply(reply) from None
        if len(found) != len(texts):
            raise self.no_reply(f"{len(found)} results for {len(texts)} texts")
        return found
