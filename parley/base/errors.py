"""Parley's exceptions, each with a one-line message that says what to do.

Every exception is a `ParleyError`; the command line prints its message without a traceback. A `ModelError` says what
a model's server did, and whether a retry may help. No message ever contains a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


def install(extra: str) -> str:
    """The command that installs an extra. No package index has Parley, so it is installed from the clone."""
    return f"pip install '.[{extra}]' in Parley's clone"


class ParleyError(Exception):
    """Something the user can fix; the exception's text is the whole message."""


class ConfigError(ParleyError):
    """An invalid name, key or value, found before any work starts."""


class ModelError(ParleyError):
    """A model call that gave no reply."""

    retryable = False

    def __init__(self, message: str, *, retry_after: float | None = None, billed: Any = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.billed = billed
        """For a call that was billed but cannot be used: an empty reply with its usage; else None."""


class AuthError(ModelError):
    """The key was refused. No other call can succeed either, so the run stops."""


class QuotaSpent(AuthError):
    """The account has no credit left. Waiting does not help, so the run stops."""


class BadRequest(ModelError):
    """The server rejects this request, and would do so again."""


class RateLimited(ModelError):
    """429: retry later, with fewer concurrent calls."""

    retryable = True


class ServerFault(ModelError):
    """5xx, a broken connection, a time-out, or a body that is not a reply."""

    retryable = True


class NotConnected(ServerFault):
    """No connection could be opened. Retried only if the server answered before."""


class Unreachable(AuthError):
    """The server was never reached. No other call can succeed either, so the run stops."""


class CutShort(ModelError):
    """A reply reached its token limit before it said anything; the limit must be raised."""


class SearchError(ParleyError):
    """A search engine failed. (A search without results is not an error.)"""

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
    """An error with one problem per line; other messages are one line.

    Args:
        kind: The type of the error.
        problems: The problems; repeated ones count once.
    """
    lines = list(dict.fromkeys(" ".join(problem.split()) for problem in problems))
    error = kind("\n".join(lines))
    vars(error)["lines"] = lines
    return error


@contextmanager
def explain_unwritable(target: object, error: type[Exception] = ParleyError) -> Iterator[None]:
    """Raise a one-line error that names the target if the block cannot write it.

    Args:
        target: The file or folder.
        error: The type of the error.
    """
    try:
        yield
    except OSError as problem:
        raise error(f"{target} cannot be written: {problem.strerror or problem}") from None
