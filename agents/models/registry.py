"""Models by name: `provider/model?option=value`. One file a provider; users register their own.

    client = model("sim/judge?female=+0.4")
    register("acme", "acme_parley.client:AcmeClient")

An installed package can bring a provider too, by an entry point in the group `parley.models`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any
from urllib.parse import unquote

from agents.errors import ConfigError
from agents.models.base import Client

DEFAULT_MODEL = "local/smollm2"


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a provider's client is, and what a user needs for it."""

    target: str
    about: str
    key: str | None = None
    extra: str | None = None
    example: str = ""


PROVIDERS: dict[str, Provider] = {
    "local": Provider(
        "agents.models.local:LocalClient",
        "embedded, in this process (llama.cpp); a name of the catalogue or a path to a .gguf",
        extra="local",
        example="local/smollm2",
    ),
    "sim": Provider(
        "agents.models.sim:SimClient", "simulated, for calibration and load", example="sim/judge?female=+0.4"
    ),
    "openai": Provider(
        "agents.models.openai:OpenAIClient", "OpenAI", key="OPENAI_API_KEY", example="openai/gpt-4o-mini"
    ),
    "deepseek": Provider(
        "agents.models.deepseek:DeepSeekClient",
        "DeepSeek",
        key="DEEPSEEK_API_KEY",
        example="deepseek/deepseek-chat",
    ),
    "google": Provider(
        "agents.models.google:GoogleClient",
        "Gemini, on google-genai",
        key="GEMINI_API_KEY",
        extra="gemini",
        example="google/gemini-2.5-flash",
    ),
    "anthropic": Provider(
        "agents.models.anthropic:AnthropicClient",
        "Claude",
        key="ANTHROPIC_API_KEY",
        extra="anthropic",
        example="anthropic/claude-sonnet-4-5",
    ),
    "server": Provider(
        "agents.models.compatible:ServerClient",
        "any OpenAI-compatible server",
        example="server/NAME?base_url=http://host:8000/v1",
    ),
    "vllm": Provider("agents.models.compatible:VLLMClient", "vLLM, by default on localhost:8000", example="vllm/NAME"),
    "ollama": Provider(
        "agents.models.compatible:OllamaClient",
        "Ollama, by default on localhost:11434",
        example="ollama/NAME",
    ),
    "llamacpp": Provider(
        "agents.models.compatible:LlamaCppClient",
        "llama.cpp's server, by default on localhost:8080",
        example="llamacpp/NAME",
    ),
}


def register(provider: str, target: str, about: str = "registered by the user") -> None:
    """Add a provider: `target` is `module:Class`, a subclass of `agents.models.Client`."""
    PROVIDERS[provider] = Provider(target, about)


def split_name(name: str) -> tuple[str, dict[str, str]]:
    """`provider/model?a=1&b=2` → the name and its options."""
    plain, _, query = name.partition("?")
    provider, slash, rest = plain.partition("/")
    if not slash or not provider or not rest:
        raise ConfigError(f"'{name}' is not a model name; write provider/model, for example {DEFAULT_MODEL}")
    options: dict[str, str] = {}
    for pair in filter(None, query.split("&")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"'{name}': option '{pair}' has no value; write {pair}=VALUE")
        options[unquote(key)] = unquote(value)
    return plain, options


def model(name: str, **options: Any) -> Client:
    """The client for a name. Fails at once, with what to set, if it cannot work."""
    plain, named = split_name(name)
    return _client_class(plain)(plain, {**named, **options})


def _client_class(plain: str) -> type[Client]:
    provider = plain.partition("/")[0]
    if provider not in PROVIDERS:
        for entry in entry_points(group="parley.models"):
            PROVIDERS.setdefault(entry.name, Provider(entry.value, f"from {entry.value}"))
    found = PROVIDERS.get(provider)
    if found is None:
        raise ConfigError(f"unknown provider '{provider}' in '{plain}' (known: {', '.join(PROVIDERS)})")
    module_name, _, class_name = found.target.partition(":")
    try:
        client = getattr(import_module(module_name), class_name)
    except ModuleNotFoundError as error:
        what = f"pip install 'parley[{found.extra}]'" if found.extra else f"pip install {error.name}"
        raise ConfigError(f"{plain} needs the package '{error.name}': {what}") from None
    assert isinstance(client, type), f"{found.target} must be a class"
    return client


class Models:
    """The clients of one run, opened once each and closed together."""

    def __init__(self, defaults: Mapping[str, Any] | None = None) -> None:
        self._defaults = dict(defaults or {})
        self._open: dict[str, Client] = {}

    def __getitem__(self, name: str) -> Client:
        if name not in self._open:
            plain, named = split_name(name)
            self._open[name] = _client_class(plain)(plain, {**self._defaults, **named})
        return self._open[name]

    def __iter__(self) -> Any:
        return iter(self._open.values())

    async def close(self) -> None:
        for client in self._open.values():
            await client.close()
        self._open.clear()
