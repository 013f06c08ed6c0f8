"""The base class of clients that use a vendor's own package: Anthropic's and Google's.

It has what both need: turns with tool calls that must be sent back as they came, and errors in the same words. The
packages' own retries are off; `Client` has its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from parley.agents.models.batches import BatchEndpoint
from parley.agents.models.http import status_error
from parley.agents.models.remote import RemoteClient, RemoteOptions
from parley.agents.models.request import ClientOptions, Effort, Request
from parley.base.address import BaseUrl
from parley.base.errors import BadRequest, ModelError

MAX_TURNS = 1000
"""How many turns with tool calls are kept to be sent back as they came."""


class SdkOptions(RemoteOptions):
    """The options of Anthropic's and Google's models."""

    timeout: float = Field(600.0, gt=0, description="seconds after which a call counts as failed")
    base_url: BaseUrl | None = Field(None, description="the server's address, without the API's version")


class SdkClient(RemoteClient):
    """A client on a vendor's package. A provider sets the names and implements the abstract methods."""

    OptionsType: ClassVar[type[ClientOptions]] = SdkOptions
    options: SdkOptions
    native_schema = True
    vision = True

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        self.turns: dict[str, Any] = {}
        """Turns that call tools, by the id of their first call, as they came: thinking and signatures included."""

    @abstractmethod
    def body(self, request: Request) -> dict[str, Any]:
        """The arguments of the package's method for one call."""

    @abstractmethod
    def error_for(self, error: Exception) -> ModelError | None:
        """The error of a failed request; None if there was a response that is not a reply."""

    @abstractmethod
    def batch_endpoint(self) -> BatchEndpoint:
        """The vendor's batches."""

    def effort_of(self, request: Request) -> Effort | None:
        """The request's effort; `BadRequest` if the model does not have it."""
        effort: Effort | None = request.options.get("effort")
        if effort is not None and effort not in self.efforts:
            raise BadRequest(f"{self.name}: effort={effort} is not supported (supported: {', '.join(self.efforts)})")
        return effort

    def keep_turn(self, first_call: str, turn: Any) -> None:
        """Keep a turn that calls tools, to send it back unchanged."""
        self.turns[first_call] = turn
        while len(self.turns) > MAX_TURNS:
            del self.turns[next(iter(self.turns))]

    def no_message(self) -> BadRequest:
        return BadRequest(f"{self.name}: there is no message to answer")

    def refused(self, status: int, message: str, *, retry_after: float | None, **what: bool) -> ModelError:
        """The error for a response whose status is not 200; `what` as in `status_error`."""
        return status_error(
            self.where, status, message, key_variable=self.key_variable, retry_after=retry_after, **what
        )
