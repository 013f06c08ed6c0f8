"""Models by name: `provider/model?option=value`. A provider is one class in one file; users can register their own.

client = model("sim/judge?female=+0.4")
register("acme", "acme_parley.client:AcmeClient")
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from autogen_core.models import ChatCompletionClient

from parley.agents.models.base import Client
from parley.agents.models.request import split_name
from parley.agents.providers import PROVIDERS, provider_of
from parley.base.address import is_loopback
from parley.base.errors import ConfigError, install


def model(name: str | ChatCompletionClient, /, **options: Any) -> Client:
    """The client for a model's name. A `ConfigError` says what is missing: a key, a package, an address.

    Args:
        name: `provider/model?option=value&…`; `parley models` lists the providers. Or an AutoGen client, which is
            wrapped, so that its calls are cached, budgeted and recorded; `name=` is then its name in records.
        **options: the same options as keyword arguments; they override those in the name. See `ClientOptions`, and the
            provider's own `OptionsType`.
    """
    if not isinstance(name, str):
        return as_client(name, **options)
    plain, query = split_name(name)
    return client_class(plain)(plain, {**query, **options})


def as_client(client: ChatCompletionClient, **options: Any) -> Client:
    """One of Parley's clients as it is; any other AutoGen client wrapped as one."""
    if isinstance(client, Client):
        return client
    from parley.agents.models.wrapped import wrap  # imported late: it loads OpenAI's client and aiohttp, which few need

    return wrap(client, **options)


def client_class(plain: str) -> type[Client]:
    """The client's class for a name without options; a `ConfigError` if its provider or package is missing."""
    prefix = plain.partition("/")[0]
    provider = PROVIDERS.get(prefix)
    if provider is None:
        raise ConfigError(f"unknown provider '{prefix}' in '{plain}' (known: {', '.join(PROVIDERS)})")
    module_name, _, class_name = provider.target.partition(":")
    try:
        client = getattr(import_module(module_name, "parley.agents.models"), class_name, None) if module_name else None
    except ModuleNotFoundError as error:
        command = install(provider.extra) if provider.extra else f"pip install {error.name}"
        raise ConfigError(f"{plain} needs the package '{error.name}': {command}") from None
    if isinstance(client, FunctionType):
        from parley.agents.models.wrapped import client_from  # see `as_client`

        return client_from(client)
    if not (isinstance(client, type) and issubclass(client, Client)):
        raise ConfigError(f"provider '{prefix}': {provider.target} is not a subclass of parley.agents.Client")
    return client


def refuse_server(name: str) -> None:
    """Raise ValueError if a model's name in a file of personas, roles or evaluators says where keys and prompts go.

    Such files are passed on. A key goes to its vendor, or to a server that the user named: on the command line, in a
    config, in Python, in the environment. A file may name the user's own servers on this machine.

    Args:
        name: the model, or a scorer such as `judge:provider/model`.
    """
    kind, colon, _ = name.partition("/")[0].rpartition(":")
    try:
        plain, options = split_name(name.removeprefix(kind + colon))
    except ConfigError:  # not a model's name; opening it raises the error
        return
    for option, value in options.items():
        # A registered provider may call it otherwise.
        if (option == "base_url" or "://" in value) and not _is_own_server(plain, value):
            variable = getattr(_class_if_installed(plain), "url_variable", None) or "the environment"
            raise ValueError(
                f"it sends your key and prompts to {_host(value) or 'another server'}, which a file may not choose; "
                f"leave {option} out of the file, and name the server yourself, on the command line or in {variable}"
            )
    if "insecure" in options:
        raise ValueError("it sends your key unencrypted, which a file may not choose; leave insecure out of the file")


def _is_own_server(plain: str, address: str) -> bool:
    """Whether the server is on this machine, and its provider has no vendor (whose key would go to whoever listens
    there).
    """
    vendor = getattr(_class_if_installed(plain), "default_url", "https://elsewhere")
    return bool(_host(address)) and is_loopback(address) and (vendor is None or is_loopback(vendor))


def _class_if_installed(plain: str) -> type[Client] | None:
    try:
        return client_class(plain)
    except ConfigError:
        return None


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def reads_silently(name: str) -> bool:
    """Whether a model's silent ballots are read from probabilities, judging by its name: a dry run has no key."""
    plain, query = split_name(name)
    kind = client_class(plain)
    try:
        return kind(plain, query).reads_silently
    except ConfigError:  # without a key or weights: the provider's usual behaviour
        return provider_of(plain).logprobs


Shared = TypeVar("Shared")


class Models:
    """The clients of one run, each opened once and closed together."""

    rehearsal: bool = False
    """Whether models are only simulated, to count their calls: then nothing may be sent or stored."""

    def __init__(self) -> None:
        self._open: dict[str, Client] = {}
        self._shared: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Client:
        """The client for a model's name, opened on first use."""
        if name not in self._open:
            self._open[name] = model(name)
        return self._open[name]

    def __iter__(self) -> Any:
        return iter(self._open.values())

    def name_of(self, client: object) -> str | None:
        """The name by which a client was opened; None if it was not opened here."""
        return next((name for name, opened in self._open.items() if opened is client), None)

    def share(self, name: str, make: Callable[[], Shared]) -> Shared:
        """Open another object once per run, such as a scorer.

        Args:
            name: identifies it; a second call with the same name returns the same object.
            make: creates it on first use. It is closed with the clients.
        """
        if name not in self._shared:
            self._shared[name] = make()
        return self._shared[name]  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Close all clients and shared objects."""
        for resource in (*self._shared.values(), *self._open.values()):
            await resource.close()
        self._shared.clear()
        self._open.clear()
