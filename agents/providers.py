"""The registry of providers: the client class and traits of each. Importing it loads neither AutoGen nor a client.

Code that depends on the kind of provider calls `provider_of(name)`; no other code looks at the prefix of a
name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider: its client class, its requirements and its traits.

    Args:
        target: the client's class, as `module:Class`; `.module` is one of `parley.agents.models`.
        about: one line for `parley models`.
        key: the environment variable of the API key, if one is needed.
        extra: the extra of parley-autogen that installs the provider's package, if one is needed.
        example: a model's name, for `parley models`.
        in_process: whether its models run in this process: free, and the same request gives the same reply.
        simulated: whether replies are simulated; reports then say so.
        on_cpu: whether its models run on a CPU, where a call takes about a second.
        logprobs: whether replies can carry log-probabilities; a single model may have none.
        continues: whether the model can continue a given beginning of a reply (prefill).
    """

    target: str
    about: str
    key: str | None = None
    extra: str | None = None
    example: str = ""
    in_process: bool = False
    simulated: bool = False
    on_cpu: bool = False
    logprobs: bool = False
    continues: bool = False

    @property
    def embedded(self) -> bool:
        """Whether its models' weights are on this machine and loaded into this process."""
        return self.in_process and not self.simulated


SAMPLED = "?silent=false"
"""Suffix for the name of a model without log-probabilities, whose ballots are sampled."""

PROVIDERS: dict[str, Provider] = {
    "local": Provider(
        target=".local:LocalClient",
        about="embedded, in this process (llama.cpp); a name in the catalogue or a path to a .gguf",
        extra="local",
        example="local/smollm2",
        in_process=True,
        on_cpu=True,
        logprobs=True,
        continues=True,
    ),
    "hf": Provider(
        target=".hf:HfClient",
        about="transformers, in this process, batched on a GPU; a name in the catalogue or on the hub, or a folder",
        extra="hf",
        example="hf/smollm2",
        in_process=True,
        logprobs=True,
        continues=True,
    ),
    "sim": Provider(
        target=".sim:SimClient",
        about="simulated, for calibration and load",
        example="sim/judge?female=+0.4",
        in_process=True,
        simulated=True,
    ),
    "openai": Provider(
        target=".openai:OpenAIClient",
        about="OpenAI",
        key="OPENAI_API_KEY",
        example="openai/gpt-6-luna",
        logprobs=True,
    ),
    "deepseek": Provider(
        target=".servers:DeepSeekClient",
        about="DeepSeek",
        key="DEEPSEEK_API_KEY",
        example="deepseek/deepseek-flash",
        logprobs=True,
    ),
    "openrouter": Provider(
        target=".servers:OpenRouterClient",
        about="OpenRouter, which passes requests on to many vendors",
        key="OPENROUTER_API_KEY",
        example="openrouter/VENDOR/NAME",
        logprobs=True,
    ),
    "google": Provider(
        target=".google:GoogleClient",
        about="Gemini, with google-genai",
        key="GEMINI_API_KEY",
        extra="gemini",
        example="google/gemini-3.8-flash",
    ),
    "anthropic": Provider(
        target=".anthropic:AnthropicClient",
        about="Claude",
        key="ANTHROPIC_API_KEY",
        extra="anthropic",
        example="anthropic/claude-haiku-5-5",
    ),
    "server": Provider(
        target=".compatible:ServerClient",
        about="any OpenAI-compatible server",
        example="server/NAME?base_url=http://host:8000/v1",
        logprobs=True,
    ),
    "vllm": Provider(
        target=".servers:VLLMClient",
        about="vLLM, by default on localhost:8000",
        example="vllm/NAME",
        logprobs=True,
        continues=True,
    ),
    "ollama": Provider(
        target=".servers:OllamaClient",
        about="Ollama, by default on localhost:11434",
        example="ollama/NAME",
        logprobs=True,
    ),
    "llamacpp": Provider(
        target=".servers:LlamaCppClient",
        about="llama.cpp's server, by default on localhost:9931",
        example="llamacpp/NAME",
        logprobs=True,
        continues=True,
    ),
}
ELSEWHERE = Provider(target="", about="")
"""An unknown provider: of an AutoGen client, or of an earlier run."""


def provider_of(name: str) -> Provider:
    """The provider of a model's name, with or without options; `ELSEWHERE` if it is not registered."""
    return PROVIDERS.get(name.partition("/")[0], ELSEWHERE)


def register(provider: str, target: str, about: str = "registered by the user", **traits: bool) -> None:
    """Add a provider, so that `provider/…` can be used as a model's name.

    Args:
        provider: the part of the name before the slash.
        target: the client's class as `module:Class`, a subclass of `parley.agents.Client`; or `module:function`, from
            the part of the name after the slash to any AutoGen client. Imported on first use.
        about: one line for `parley models`.
        **traits: traits, as in `Provider`: `logprobs=True`.
    """
    PROVIDERS[provider] = Provider(target=target, about=about, **traits)  # type: ignore[arg-type]
