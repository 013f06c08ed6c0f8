"""The base class of clients whose model runs on a server: its address, its key, and what its failures mean."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from parley.agents.models.base import Client
from parley.agents.models.http import NO_CONNECTION, not_connected, said
from parley.agents.models.reply import Reply
from parley.agents.models.request import ClientOptions
from parley.base.address import INSECURE, INSECURE_HINT, BaseUrl, from_environment, proxy_for, require_https
from parley.base.errors import ConfigError, ModelError, ServerFault


class RemoteOptions(ClientOptions):
    """The options of models on a server."""

    base_url: BaseUrl | None = Field(None, description="the server's address")
    insecure: bool = Field(False, description=INSECURE)


class RemoteClient(Client):
    """A client of a server. The address comes from an option or the environment, the key from the environment only."""

    OptionsType: ClassVar[type[ClientOptions]] = RemoteOptions
    options: RemoteOptions
    default_url: ClassVar[str | None] = None
    """The server's address, if neither `?base_url=` nor `url_variable` gives one."""
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

    @property
    def where(self) -> str:
        """The model and its server, as messages begin."""
        return f"{self.name}: {self.base_url}"

    def unreadable(self, what: str = "sent an unreadable reply", billed: Reply | None = None) -> ServerFault:
        return ServerFault(f"{self.where} {what}", billed=billed)

    def transport_error(self, error: Exception, timeout: float | None = None) -> ModelError:
        """The error of a request that aiohttp could not complete, within `timeout` if that is not the client's own."""
        if isinstance(error, NO_CONNECTION):
            return not_connected(self.name, self.base_url, error)
        if isinstance(error, TimeoutError):
            return self.timed_out(timeout)
        return ServerFault(f"{self.where}{said(str(error) or type(error).__name__, self._key)}")
