"""The base class of clients that use a vendor's own package: Anthropic's and Google's.

It has what both need: the key and the address from the environment, turns with tool calls that must be sent back as
they came, and errors in the same words. The packages' own retries are off; `Client` has its own.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from autogen_core.models import ModelFamily, ModelInfo
from pydantic import Field

from parley.agents.models.batches import BatchEndpoint
from parley.agents.models.http import status_error
from parley.agents.models.reply import Reply
from parley.agents.models.request import ClientOptions, Effort, Request
from parley.agents.models.streaming import StreamingClient
from parley.base.address import INSECURE, INSECURE_HINT, BaseUrl, from_environment, proxy_for, require_https
from parley.base.errors import BadRequest, ConfigError, ModelError, ServerFault

MAX_TURNS = 1000
"""How many turns with tool calls are kept to be sent back as they came."""


class SdkOptions(ClientOptions):
    """The options of Anthropic's and Google's models."""

    timeout: float = Field(600.0, gt=0, description="seconds after which a call counts as failed")
    base_url: BaseUrl | None = Field(None, description="the server's address, without the API's version")
    insecure: bool = Field(False, description=INSECURE)


class SdkClient(StreamingClient):
    """A client on a vendor's package. A provider sets the names and implements the abstract methods."""

    OptionsType: ClassVar[type[ClientOptions]] = SdkOptions
    options: SdkOptions
    key_variables: ClassVar[tuple[str, ...]]
    """The environment variables that may contain the key; the first one that is set is used."""
    url_variable: ClassVar[str]
    """The environment variable that may contain the address."""
    default_url: ClassVar[str]
    """The address, if neither `?base_url=` nor `url_variable` gives one."""
    native_schema = True
    vision = True

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        keys = {variable: os.environ.get(variable, "").strip() for variable in self.key_variables}
        self._key_variable = next((variable for variable, key in keys.items() if key), "")
        if not self._key_variable:
            raise ConfigError(f"{name} needs a key: set {' or '.join(self.key_variables)} in the environment")
        self._key = keys[self._key_variable]
        self.base_url = self.options.base_url or from_environment(name, self.url_variable) or self.default_url
        if not self.options.insecure:
            require_https(name, self.base_url, INSECURE_HINT)
        self.proxy = proxy_for(self.base_url)
        self.identity = f"{self.base_url} {name}"
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

    @property
    def where(self) -> str:
        """The model and its server, as messages begin."""
        return f"{self.name}: {self.base_url}"

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=self.vision,
            function_calling=True,
            json_output=True,
            family=ModelFamily.UNKNOWN,
            structured_output=True,
            multiple_system_messages=False,
        )

    def effort_of(self, request: Request) -> Effort | None:
        """The request's effort; `BadRequest` if the model does not have it."""
        effort: Effort | None = request.options.get("effort")
        if effort is not None and effort not in self.efforts:
            raise BadRequest(f"{self.name}: effort={effort} is not possible (it has {', '.join(self.efforts)})")
        return effort

    def keep_turn(self, first_call: str, turn: Any) -> None:
        """Keep a turn that calls tools, to send it back unchanged."""
        self.turns[first_call] = turn
        while len(self.turns) > MAX_TURNS:
            del self.turns[next(iter(self.turns))]

    def no_message(self) -> BadRequest:
        return BadRequest(f"{self.name}: there is no message to answer")

    def timed_out(self) -> ServerFault:
        return ServerFault(f"{self.name}: no answer within {self.options.timeout:g} s")

    def unreadable(self, what: str = "sent an unreadable reply", billed: Reply | None = None) -> ServerFault:
        return ServerFault(f"{self.where} {what}", billed=billed)

    def refused(self, status: int, message: str, *, retry_after: float | None, **what: bool) -> ModelError:
        """The error for a response whose status is not 200; `what` as in `status_error`."""
        return status_error(
            self.where, status, message, key_variable=self._key_variable, retry_after=retry_after, **what
        )
