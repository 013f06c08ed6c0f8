"""`perspective`: Google's Perspective API, for those who hold a key (PERSPECTIVE_API_KEY). It ends on 31 December 2026.

Its usual quota is one query a second, which is the pace here; whoever was granted more sets PERSPECTIVE_QPS.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from datetime import date
from typing import ClassVar

from parley.agents import AuthError, ConfigError, ModelError
from parley.judging.toxicity.remote import Remote
from parley.judging.toxicity.scorer import Toxicity

LAST_DAY = date(2026, 12, 31)
ENDED = "the Perspective API ended on 31 December 2026"
ATTRIBUTES = ("TOXICITY", "SEVERE_TOXICITY", "IDENTITY_ATTACK", "INSULT", "PROFANITY", "THREAT")


class Perspective(Remote):
    name = "perspective"
    version = "v1alpha1 TOXICITY"
    key_variable: ClassVar[str] = "PERSPECTIVE_API_KEY"
    url_variable: ClassVar[str] = "PERSPECTIVE_BASE_URL"
    default_url: ClassVar[str] = "https://commentanalyzer.googleapis.com/v1alpha1"
    connections: ClassVar[int] = 1
    no_key: ClassVar[str] = "; no new keys are given out, and the service ends on 31 December 2026"

    def __init__(self, base_url: str | None = None, retries: int = 5, qps: float | None = None) -> None:
        super().__init__(base_url, retries)
        said = os.environ.get("PERSPECTIVE_QPS", "1")
        try:
            self._gap = 1 / (float(said) if qps is None else qps)
        except (ValueError, ZeroDivisionError):
            raise ConfigError(f"PERSPECTIVE_QPS must be queries a second, not '{said}'") from None
        self._next = 0.0

    async def ask(self, texts: Sequence[str]) -> list[Toxicity]:
        now = time.monotonic()
        start = max(now, self._next)
        self._next = start + self._gap
        await asyncio.sleep(start - now)
        (text,) = texts
        body = {
            "comment": {"text": text},
            "requestedAttributes": {attribute: {} for attribute in ATTRIBUTES},
            "doNotStore": True,
        }
        try:
            # The key travels in a header: an address may end in a log.
            reply = await self.post("/comments:analyze", body, {"X-Goog-Api-Key": self.key})
        except ModelError as error:
            if date.today() > LAST_DAY:
                raise type(error)(f"{error}; {ENDED}", retry_after=error.retry_after) from None
            raise
        try:
            each = reply["attributeScores"]
            labels = {label.lower(): float(each[label]["summaryScore"]["value"]) for label in ATTRIBUTES}
        except (KeyError, TypeError, ValueError):
            raise self.no_reply(reply) from None
        return [Toxicity(labels["toxicity"], labels=tuple(labels.items()))]

    def error(self, status: int, headers: Mapping[str, str], raw: bytes) -> ModelError:
        if status == 400 and b"API_KEY_INVALID" in raw:
            return AuthError(f"{self.name}: {self.base_url} refused the key; check {self.key_variable}")
        return super().error(status, headers, raw)
