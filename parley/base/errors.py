"""Parley's exceptions, each with a one-line message that says what to do.

Every exception is a `ParleyError`; the command line prints its message without a traceback. A `ModelError` says what
a model's server did and whether a retry may help. No message ever contains a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class ParleyError(Exception):
    """Something the user can fix; the exception's text is the whole message."""


class ConfigError(ParleyError):
    """A name, key or value that is not valid, found before any work starts."""


class ModelError(ParleyError):
    """A model call that gave no reply."""

    retryable = False

    def __init__(self, message: str, *, retry_after: float | None = None, billed: Any = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.billed = billed
        """The reply, empty but for its usage, of a call that was answered and billed but cannot be used; or None."""


class AuthError(ModelError):
    """The key was refused. No other call can succeed either, so the run stops."""


class QuotaSpent(AuthError):
    """The account has no credit left. Waiting does not help, so the run stops."""


class BadRequest(ModelError):
    """The server rejects this request, and would reject it again."""


class RateLimited(ModelError):
    """429: retry later, with fewer concurrent calls."""

    retryable = True


class ServerFault(ModelError):
    """5xx, a broken connection, a time-out, or a body that is not a reply."""

    retryable = True


class NotConnected(ServerFault):
    """No connection could be opened. A server that answered before may come back; one that never did will not."""


class Unreachable(AuthError):
    """No server was reached, this time or before. No other call can succeed either, so the run stops."""


class CutShort(ModelError):
    """A reply that reached its limit of tokens before it said anything: the limit must be raised."""


class SearchError(ParleyError):
    """A search engine failed. Finding nothing is not an error: it is an empty list of results."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class BudgetSpent(ParleyError):
    """The run's budget in calls, tokens or money is used up."""


class ScenarioError(ValueError):
    """A scenario file or name that cannot be used."""


class UnknownName(ScenarioError):
    """A suite or identity that does not exist."""


def several(kind: type[Exception], problems: Iterable[str]) -> Exception:
    """An error with one problem a line, which the command line prints as such: other messages are one line.

    Args:
        kind: The type of the error.
        problems: What is wrong; a repeated one counts once.
    """
    lines = list(dict.fromkeys(" ".join(problem.split()) for problem in problems))
    error = kind("\n".join(lines))
    vars(error)["lines"] = lines
    return error


@contextmanager
def explain_unwritable(target: object, error: type[Exception] = ParleyError, hint: str = "") -> Iterator[None]:
    """Raise one line that names the target where the block cannot write it.

    Args:
        target: The file or folder.
        error: What is raised.
        hint: What else to say, with its punctuation.
    """
    try:
        yield
    except OSError as problem:
        raise error(f"{target} cannot be written: {problem.strerror or problem}{hint}") from None
