"""What can go wrong, each with one line a person can act on.

Every error of ours is a `ParleyError`; the command line prints its text and nothing else. A `ModelError` says
what a model's server did, and whether asking again may help. No message ever holds a key.
"""

from __future__ import annotations


class ParleyError(Exception):
    """Something the user can mend; its text is the whole message."""


class ConfigError(ParleyError):
    """A name, key or value that does not fit: found before any work starts."""


class ModelError(ParleyError):
    """A model call that gave no reply."""

    retryable = False

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class AuthError(ModelError):
    """The key was refused: nothing else will work either, so a run stops."""


class QuotaSpent(AuthError):
    """The account is empty: waiting does not help, and nothing else will work either."""


class BadRequest(ModelError):
    """The server will not take this request, now or later."""


class RateLimited(ModelError):
    """429: ask again, later, and with fewer at once."""

    retryable = True


class ServerFault(ModelError):
    """5xx, a broken connection, a time-out, or a body that is not a reply."""

    retryable = True


class SearchError(ParleyError):
    """A search engine that gave no answer: which is not the same as finding nothing."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class BudgetSpent(ParleyError):
    """The run's budget in calls, tokens or money is used up."""
