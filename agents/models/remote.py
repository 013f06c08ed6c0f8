"""The base class of clients for servers: address, key and errors."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from aiohttp.http import HttpProcessingError
from pydantic import Field

from parley.agents.models.base import Client
from parley.agents.models.http import NO_CONNECTION, error_ending, not_connected, status_error
from parley.agents.models.reply import Reply
from parley.agents.models.request import ClientOptions, Effort, Request
from parley.agents.models.wire import billed_reply
from parley.base.address import INSECURE, INSECURE_HINT, BaseUrl, from_environment, proxy_for, require_https
from parley.base.errors import BadRequest, ConfigError, ModelError, ServerFault

MAX_TURNS = 4096
"""Number of turns with tool calls that are kept."""


class RemoteOptions(ClientOptions):
    """The options of models on a server."""

    base_url: BaseUrl | None = Field(None, description="the server's address")
    insecure: bool = Field(False, description=INSECURE)


class SdkOptions(RemoteOptions):
    """The options of Anthropic's and Google's models, which are called with the vendor's own package."""

    timeout: float = Field(600.0, gt=0, description="seconds after which a call counts as failed")
    base_url: BaseUrl | None = Field(None, description="the server's address, without the API's version")


class RemoteClient(Client):
    """A client of a server. The address comes from an option or the environment, the key from the environment only."""

    OptionsType: ClassVar[type[ClientOptions]] = RemoteOptions
    options: RemoteOptions
    default_url: ClassVar[str | None] = None
    """Default address, if neither `?base_url=` nor `url_variable` gives one."""
    url_variable: ClassVar[str | None] = None
    """The environment variable that may contain the address."""
    key_variables: ClassVar[tuple[str, ...]] = ()
    """The environment variables that may contain the key; the first one that is set is used."""
    key_needed: ClassVar[bool] = True
    """Whether calls without a key are impossible."""
    calls_tools = True

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        url = self.options.base_url or from_environment(name, self.url_variable) or self.default_url
        if not url:
            or_set = f", or set {self.url_variable}" if self.url_variable else ""
            raise ConfigError(f"{name} needs an address: write {name}?base_url=http://host:port/v1{or_set}")
        self.base_url = url
        self.proxy = proxy_for(url)  # an unsupported one is refused before the run
        self.identity = f"{url} {name}"
        keys = {variable: os.environ.get(variable, "").strip() for variable in self.key_variables}
        self.key_variable = next((variable for variable, key in keys.items() if key), next(iter(keys), None))
        """The variable to check if the key is refused."""
        self._key = keys.get(self.key_variable or "", "")
        if self.key_needed and not self._key:
            raise ConfigError(f"{name} needs a key: set {' or '.join(self.key_variables)} in the environment")
        if not self._key.isprintable():
            raise ConfigError(f"{name}: {self.key_variable} contains a line break; a key has none")
        if self._key and not self.options.insecure:
            require_https(name, url, INSECURE_HINT)
        self.turns: dict[str, Any] = {}
        """Data that must be sent back unchanged with the result of a tool call, such as thinking, by the call's id."""

    @abstractmethod
    def body(self, request: Request) -> dict[str, Any]:
        """The request in the vendor's format: a JSON body, or the arguments of its package's method."""

    def keep_turn(self, call: str, turn: Any) -> None:
        """Keep data that must be sent back with the result of a tool call; the oldest is dropped if there is too
        much.
        """
        self.turns[call] = turn
        while len(self.turns) > MAX_TURNS:
            del self.turns[next(iter(self.turns))]

    def effort_of(self, request: Request) -> Effort | None:
        """The request's effort; `BadRequest` if the model does not have it."""
        effort: Effort | None = request.options.get("effort")
        if effort is not None and effort not in self.efforts:
            raise BadRequest(f"{self.name}: effort={effort} is not supported (supported: {', '.join(self.efforts)})")
        return effort

    def no_message(self) -> BadRequest:
        return BadRequest(f"{self.name}: there is no message to answer")

    def refused(self, status: int, message: str, *, retry_after: float | None, **what: bool) -> ModelError:
        """The error for a response whose status is not 200; `what` as in `status_error`."""
        return status_error(
            self.where, status, message, key_variable=self.key_variable, retry_after=retry_after, **what
        )

    @property
    def where(self) -> str:
        """The beginning of messages: the model and its server."""
        return f"{self.name}: {self.base_url}"

    def unreadable(self, what: str = "sent an unreadable reply", billed: Reply | None = None) -> ServerFault:
        """The error for a response with status 200 that is no reply: the vendor bills it, whatever it says of usage."""
        return ServerFault(f"{self.where} {what}", billed=billed or billed_reply(None))

    def transport_error(self, error: Exception, answered: bool = False) -> ModelError:
        """The error of a request that aiohttp could not complete.

        Args:
            error: What aiohttp raised.
            answered: Whether a response with status 200 had begun, which the vendor bills.
        """
        fault = self._transport_error(error)
        fault.billed = billed_reply(None) if answered else fault.billed
        return fault

    def _transport_error(self, error: Exception) -> ModelError:
        if isinstance(error, NO_CONNECTION):
            return not_connected(self.name, self.base_url, error, self.proxy)
        if isinstance(error, TimeoutError):
            return self.timed_out()
        if isinstance(error, HttpProcessingError):  # its text quotes what was sent
            return self.unreadable("sent a line that is too long to be an event of a stream")
        return ServerFault(f"{self.where}{error_ending(str(error) or type(error).__name__, self._key)}")
