"""HTTP for all clients: aiohttp, through the environment's proxy, with a limit on the size of responses.

Also the errors of failed requests: which error a status becomes, and how long the server asks to wait. `throttle`
says when it is sent again.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TypedDict

import aiohttp
from aiohttp.http import HttpProcessingError
from yarl import URL

from parley.agents.models.reply import redact
from parley.base.address import proxy_for
from parley.base.errors import (
    AuthError,
    BadRequest,
    ConfigError,
    ModelError,
    NotConnected,
    QuotaSpent,
    RateLimited,
    ServerFault,
)

MAX_BYTES = 32 * 2**20
"""Maximum size of a response: about twice that of 8,192 tokens with twenty log-probabilities each."""
LINE_BYTES = 2**20
"""Half the size limit of a streamed event."""
CONNECT_SECONDS = 10.0
"""Timeout for opening a connection. A firewall that drops packets would otherwise use up a whole call's timeout."""
LONGEST_WAIT = 1e9
"""The longest wait that messages show, in seconds (30 years); retries never wait that long."""


class TooLong(aiohttp.ClientError):
    """Raised for a body larger than the limit. It is a `ClientError`, so it is retried like a broken connection."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the response is larger than {max_bytes:,} bytes")


class ProxyArguments(TypedDict):
    """A proxy as aiohttp's sessions take it, with its password separate, since errors show the address."""

    proxy: URL | None
    proxy_auth: aiohttp.BasicAuth | None


def through_proxy(url: str) -> ProxyArguments:
    """A session's proxy arguments for an address; both None if it has no proxy."""
    proxy = URL(proxy_for(url) or "")
    user = aiohttp.BasicAuth(proxy.user, proxy.password or "") if proxy.user else None
    return {"proxy": proxy.with_user(None) if proxy.host else None, "proxy_auth": user}


def open_session(url: str, timeout: float) -> aiohttp.ClientSession:
    """A session for one server, which must be closed.

    Put a key into the headers of each request, not of the session: aiohttp sends a session's headers to the proxy too,
    in clear text.

    Args:
        url: the server's address.
        timeout: seconds that a request may take, including reading its response.
    """
    return aiohttp.ClientSession(
        # The throttle limits concurrent calls, so the connector must not.
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
        # This does what `trust_env` does, once: aiohttp asks two threads per call, which doubles its CPU time, and
        # takes a user from ~/.netrc too, with which it refuses a request that carries a key.
        **through_proxy(url),
        timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_SECONDS),
        headers={"User-Agent": "parley"},
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=LINE_BYTES,
    )


def close_with(client: object, session: aiohttp.ClientSession) -> None:
    """Close a session at the latest with its client: nobody closes a debate's own, and aiohttp would complain at exit.

    Args:
        client: The session's client.
        session: The session.
    """
    weakref.finalize(client, _abandon, session)


def _abandon(session: aiohttp.ClientSession) -> None:
    """Close a session as far as that needs no event loop, since there may be none left."""
    closing = session.close()
    with suppress(StopIteration):
        closing.send(None)
    closing.close()
    session.detach()


async def read_body(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """Read the decompressed body; raises `TooLong` as soon as it exceeds the limit."""
    if (response.content_length or 0) > max_bytes:
        raise TooLong(max_bytes)
    chunks, size = [], 0
    while chunk := await response.content.readany():
        chunks.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            raise TooLong(max_bytes)
        if response.content.at_eof():  # as a rule after the first, so that nothing is joined or waited for
            break
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


NO_CONNECTION = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""aiohttp's errors before anything is sent."""
TRANSPORT = (aiohttp.ClientError, HttpProcessingError, OSError)
"""aiohttp's errors for a request that cannot be completed; the second is for a streamed line that is too long."""


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes: httpx wraps the operating system's error four levels deep."""
    while error is not None:
        yield error
        parts = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
        error = next(iter(parts), None) or error.__cause__ or error.__context__


def not_connected(name: str, url: str, error: BaseException, proxy: str | None) -> NotConnected:
    """The error for a connection that could not be opened, with advice.

    Args:
        name: the model.
        url: the server's address.
        error: what the HTTP library raised.
        proxy: the address of the proxy, if there is one.
    """
    causes = [*_chain(error), getattr(error, "os_error", None)]
    if tls := [cause for cause in causes if isinstance(cause, ssl.SSLError)]:
        cause = tls[-1]  # the text of aiohttp's own, which comes first, repeats the address
        hint = "; write http:// if the server has no TLS" if "WRONG_VERSION_NUMBER" in str(cause) else ""
        return NotConnected(f"{name}: no encrypted connection to {url}{error_ending(cause, '')}{hint}")
    if proxy:  # the server is reached through it, so it is the proxy that cannot be reached
        return NotConnected(f"{name}: no connection to the proxy {URL(proxy).host}: check HTTPS_PROXY and the network")
    if any(isinstance(cause, socket.gaierror) for cause in causes) or "name resolution" in str(error):
        hint = "check the address and the network; local/smollm2 works offline"
        return NotConnected(f"{name}: the name {URL(url).host} cannot be resolved: {hint}")
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        hint = "check the network, the firewall and the proxy"
        return NotConnected(f"{name}: {url} did not answer within {CONNECT_SECONDS:g} s: {hint}")
    number = next((cause.errno for cause in causes if isinstance(cause, OSError) and cause.errno), None)
    why = f" ({os.strerror(number).lower()})" if number and number > 0 else ""
    return NotConnected(f"{name}: no connection to {url}{why}: check the network, and that the server is running")


def status_error(
    where: str,
    status: int,
    message: str,
    *,
    key_variable: str | None,
    retry_after: float | None,
    key_refused: bool = False,
    no_credit: bool = False,
) -> ModelError:
    """The error for a response whose status is not 200.

    Args:
        where: the beginning of the message: the model and its server.
        status: the response's status.
        message: the server's message, from `server_message`.
        key_variable: the environment variable to check if the key was refused.
        retry_after: seconds that the server asks to wait.
        key_refused: whether the response says so, with any status.
        no_credit: whether the response says so, with any status.
    """
    where = f"{where} answered {status}"
    if status in (401, 403) or key_refused:
        return AuthError(f"{where}, the key was refused{f'; check {key_variable}' if key_variable else ''}")
    if status == 402 or no_credit:
        return QuotaSpent(f"{where}, the account has no credit left{message}")
    if status == 429:
        return RateLimited(f"{where}, too many requests", retry_after=retry_after)
    if status >= 500 or status == 408:
        return ServerFault(f"{where}{message}", retry_after=retry_after)
    return BadRequest(f"{where}{message}")


def retry_seconds(headers: Mapping[str, str]) -> float | None:
    """How long the server asks to wait: its `retry-after-ms`, or `Retry-After` in seconds or as a date; else None."""
    values = {key.lower(): value for key, value in headers.items() if key.lower().startswith("retry-after")}
    for key, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(values[key]) / unit
        except (KeyError, ValueError):
            continue
        if isfinite(seconds):
            return min(max(0.0, seconds), LONGEST_WAIT)
    try:
        until = parsedate_to_datetime(values["retry-after"]).timestamp()
    except (KeyError, ValueError, OverflowError, OSError):  # a year before 1 or after 9999, in this time zone
        return None
    return max(0.0, until - time.time())


def server_message(raw: bytes, key: str) -> str:
    """The message in an error's body, shortened and with the key redacted: ': the model x does not exist'."""
    try:
        data = json.loads(raw)
        error = data.get("error", data)  # older versions of vLLM have the message at the top level
        text = error["message"] if isinstance(error, dict) else str(error)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        text = raw.decode("utf-8", "replace")
    return error_ending(text, key)


def error_ending(text: object, key: str) -> str:
    """A server's words for the end of an error message: one short line, with the key redacted; "" if there are none."""
    line = " ".join(str(text).split())
    line = redact(line.replace(key, "***") if key else line, key)
    return f": {line[:200]}" if line else ""


def load_certificates(load: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """Load the certificates that a vendor's package trusts; ConfigError if SSL_CERT_FILE names a file without any.

    Args:
        load: loads them as the package does.
    """
    try:
        return load()
    except OSError as error:  # OpenSSL's is one too
        name, why = os.environ.get("SSL_CERT_FILE"), error.strerror or error
        raise ConfigError(f"SSL_CERT_FILE={name}: no certificates can be read from it ({why})") from None
