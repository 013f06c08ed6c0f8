"""`openai-moderation`: OpenAI's endpoint, in batches, with throttling and retries. A

text that the server rejects, or cannot score within the retries, has a reason in place of a score. A rejected key stops
the run, since no other request would work either.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp

from parley.agents import AuthError, BadRequest, ConfigError, ModelError, RateLimited, ServerFault
from parley.agents.models.http import MAX_BYTES, open_session, read_body, retry_seconds, server_message, status_error
from parley.agents.models.reply import redact
from parley.agents.models.throttle import MAX_WAIT_SECONDS, Throttle, backoff
from parley.base.address import from_environment, require_https
from parley.base.redaction import hide_in_error
from parley.base.tasks import gather_or_cancel
from parley.base.text import plural
from parley.judging.toxicity.scorer import Toxicity, in_pieces, worst

KEY, ADDRESS = "OPENAI_API_KEY", "OPENAI_BASE_URL"
PUBLIC_ADDRESS = "https://api.openai.com/v1"
PIECE_WORDS, BATCH_SIZE, CONNECTIONS = 1000, 32, 4
TIMEOUT = 60.0
TOXIC = ("harassment", "harassment/threatening", "hate", "hate/threatening")


class OpenAIModeration:
    """OpenAI's moderation endpoint.

    Args:
        base_url: The server's address (default: the environment variable, or the public one).
        retries: Maximum retries of a failed request.
    """

    name = "openai-moderation"
    version = "omni-moderation-2024-09-26"  # dated: "latest" may change while old scores stay cached

    def __init__(self, base_url: str | None = None, retries: int = 5) -> None:
        self.key = os.environ.get(KEY, "").strip()
        if not self.key:
            raise ConfigError(f"{self.name} needs a key: set {KEY} in the environment")
        self.base_url = base_url or from_environment(self.name, ADDRESS) or PUBLIC_ADDRESS
        require_https(self.name, self.base_url)
        self.retries = retries
        self._failures = 0
        self._throttle = Throttle(CONNECTIONS)
        self._session: aiohttp.ClientSession | None = None

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        pieces = [in_pieces(text, PIECE_WORDS) for text in texts]
        flat = [piece for of_text in pieces for piece in of_text]
        batches = [flat[start : start + BATCH_SIZE] for start in range(0, len(flat), BATCH_SIZE)]
        scores = iter([score for batch in await gather_or_cancel(map(self._score_batch, batches)) for score in batch])
        return [worst([next(scores) for _ in of_text]) for of_text in pieces]

    async def _score_batch(self, texts: Sequence[str]) -> list[Toxicity]:
        attempt = 0
        while True:
            attempt += 1
            await self._throttle.enter()
            succeeded = False
            try:
                scores = await self._ask(texts)
                succeeded, self._failures = True, 0
                return scores
            except AuthError:
                raise
            except BadRequest as error:
                if len(texts) == 1:
                    return [Toxicity(None, why=hide_in_error(str(error)))]
                break
            except ModelError as error:
                # After this many failures in a row the server counts as down: each further batch has one attempt.
                self._failures += 1
                down = self._failures >= CONNECTIONS * (self.retries + 1)
                if down or attempt > self.retries or (error.retry_after or 0.0) > MAX_WAIT_SECONDS:
                    return [Toxicity(None, why=hide_in_error(str(error))) for _ in texts]
                if isinstance(error, RateLimited):
                    self._throttle.slow_down(error.retry_after)
                pause = backoff(attempt, error.retry_after)
            finally:
                self._throttle.leave(succeeded=succeeded)
            await asyncio.sleep(pause)
        # The server rejects one of the texts: score each separately, so that the others get a score.
        singles = await gather_or_cancel(self._score_batch([text]) for text in texts)
        return [score for single in singles for score in single]

    async def _ask(self, texts: Sequence[str]) -> list[Toxicity]:
        """The scores of some texts, with one request; raises `ModelError` if it fails."""
        reply = await self._post({"model": self.version, "input": list(texts)})
        try:
            scores = [
                {str(label): float(value) for label, value in result["category_scores"].items()}
                for result in reply["results"]
            ]
            toxicities = [
                Toxicity(max(labels[kind] for kind in TOXIC), labels=tuple(labels.items())) for labels in scores
            ]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._unexpected_reply(reply) from None
        if len(toxicities) != len(texts):
            raise self._unexpected_reply(f"{plural(len(toxicities), 'result')} for {plural(len(texts), 'text')}")
        return toxicities

    async def _post(self, body: Mapping[str, Any]) -> Any:
        """Send JSON and return the JSON of the reply; raise `ModelError` if that fails."""
        if self._session is None or self._session.closed:
            self._session = open_session(self.base_url, TIMEOUT)
        payload = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        address = f"{self.base_url}/moderations"
        try:
            async with self._session.post(address, data=payload, headers=headers, allow_redirects=False) as response:
                raw = await read_body(response, MAX_BYTES)
                if response.status != 200:
                    raise status_error(
                        f"{self.name}: {self.base_url}",
                        response.status,
                        server_message(raw, self.key),
                        key_variable=KEY,
                        retry_after=retry_seconds(response.headers),
                    )
        except TimeoutError:
            raise ServerFault(f"{self.name}: no answer within {TIMEOUT:g} s") from None
        except aiohttp.ClientError as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise ServerFault(f"{self.name}: {self.base_url}: {reason}") from None
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            raise self._unexpected_reply(raw) from None

    def _unexpected_reply(self, raw: object) -> ServerFault:
        """The error for a reply that is not as documented."""
        start = redact(raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw), self.key)[:60]
        return ServerFault(f"{self.name}: {self.base_url} sent an unexpected reply: {start!r}")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
