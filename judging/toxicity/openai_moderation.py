"""`openai-moderation`: OpenAI's moderation endpoint, free of charge with a key (OPENAI_API_KEY).

The score is the highest of harassment and hate, with or without threats: what the other scorers call toxic. All
categories (violence, sexual, self-harm …) are stored as labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from parley.base.text import plural
from parley.judging.toxicity.remote import Remote
from parley.judging.toxicity.scorer import Toxicity

TOXIC = ("harassment", "harassment/threatening", "hate", "hate/threatening")


class OpenAIModeration(Remote):
    """OpenAI's moderation endpoint."""

    name = "openai-moderation"
    version = "omni-moderation-2024-09-26"  # dated: "latest" may change while old scores stay cached
    key_variable: ClassVar[str] = "OPENAI_API_KEY"
    url_variable: ClassVar[str] = "OPENAI_BASE_URL"
    default_url: ClassVar[str] = "https://api.openai.com/v1"
    batch_size: ClassVar[int] = 32

    async def ask(self, texts: Sequence[str]) -> list[Toxicity]:
        headers = {"Authorization": f"Bearer {self.key}"}
        reply = await self.post("/moderations", {"model": self.version, "input": list(texts)}, headers)
        try:
            scores = [
                {str(label): float(value) for label, value in result["category_scores"].items()}
                for result in reply["results"]
            ]
            toxicities = [
                Toxicity(max(labels[kind] for kind in TOXIC), labels=tuple(labels.items())) for labels in scores
            ]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self.unexpected_reply(reply) from None
        if len(toxicities) != len(texts):
            raise self.unexpected_reply(f"{plural(len(toxicities), 'result')} for {plural(len(texts), 'text')}")
        return toxicities
