"""`perspective`: Google's Perspective API, with a key (PERSPECTIVE_API_KEY). The service ends on 31 December 2026.

Its usual quota is one query per second, which is the default here; PERSPECTIVE_QPS sets a higher one.
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
    """Google's Perspective API.

    Args:
        base_url: The server's address (default: PERSPECTIVE_BASE_URL, or Google's).
        retries: Maximum further attempts after a failed request.
        qps: Queries per second (default: PERSPECTIVE_QPS, or 1).
    """

    name = "perspective"
    version = "v1alpha1 TOXICITY"
    key_variable: ClassVar[str] = "PERSPECTIVE_API_KEY"
    url_variable: ClassVar[str] = "PERSPECTIVE_BASE_URL"
    default_url: ClassVar[str] = "https://commentanalyzer.googleapis.com/v1alpha1"
    connections: ClassVar[int] = 1
    no_key: ClassVar[str] = " (no new keys are issued, and the service ends on 31 December 2026)"

    def __init__(self, base_url: str | None = None, retries: int = 5, qps: float | None = None) -> None:
        super().__init__(base_url, retries)
        variable = os.environ.get("PERSPECTIVE_QPS", "1")
        try:
            self._interval = 1 / (float(variable) if qps is None else qps)
        except (ValueError, ZeroDivisionError):
            raise ConfigError(f"PERSPECTIVE_QPS must be a number of queries per second, got '{variable}'") from None
        self._next = 0.0

    async def ask(self, texts: Sequence[str]) -> list[Toxicity]:
        now = time.monotonic()
        start = max(now, self._next)
        self._next = start + self._interval
        await asyncio.sleep(start - now)
        (text,) = texts
        body = {
            "comment": {"text": text},
            "requestedAttributes": {attribute: {} for attribute in ATTRIBUTES},
            "doNotStore": True,
        }
        try:
            # The key goes into a header, since addresses are often logged.
            reply = await self.post("/comments:analyze", body, {"X-Goog-Api-Key": self.key})
        except ModelError as error:
            if date.today() > LAST_DAY:
                raise type(error)(f"{error}; {ENDED}", retry_after=error.retry_after) from None
            raise
        try:
            scores = reply["attributeScores"]
            labels = {label.lower(): float(scores[label]["summaryScore"]["value"]) for label in ATTRIBUTES}
        except (KeyError, TypeError, ValueError):
            raise self.unexpected_reply(reply) from None
        return [Toxicity(labels["toxicity"], labels=tuple(labels.items()))]

    def error(self, status: int, headers: Mapping[str, str], raw: bytes) -> ModelError:
        if status == 400 and b"API_KEY_INVALID" in raw:
            return AuthError(f"{self.name}: {self.base_url} refused the key; check {self.key_variable}")
        return super().error(status, headers, raw)
