"""Traits of a model: its options, its price, the parameters that it accepts, and its abilities.

A provider's class sets the fields; `Provider` has the traits of all its models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from autogen_core.models import LLMMessage, ModelFamily, ModelInfo
from autogen_core.tools import Tool, ToolSchema
from pydantic import ValidationError

from parley.agents.models.prices import Price, price_of
from parley.agents.models.request import THINK_TOKENS, ClientOptions, Effort, Request, estimate_tokens, prompt_message
from parley.agents.models.thoughts import known_to_think
from parley.agents.providers import provider_of
from parley.base.errors import ConfigError
from parley.base.home import say


class ModelTraits:
    """Traits of a model; every client has them.

    Args:
        name: the full name, `provider/model`, without options.
        options: values for `OptionsType`, from the `?…` of the name or from Python.
    """

    OptionsType: ClassVar[type[ClientOptions]] = ClientOptions
    """The options that the provider accepts."""
    cacheable: bool = True
    """Whether replies are stored in the reply cache."""
    native_schema: bool = False
    """Whether the provider supports constrained decoding to a JSON schema."""
    next_tokens: ClassVar[bool] = False
    """Whether every next token's probability is available, as `parley.agents.persona_agent` needs."""
    efforts: tuple[Effort, ...] = ()
    """The values of the option `effort` that the provider or this model supports; `send` maps them."""
    takes_temperature: bool = True
    """Whether the model accepts `temperature` and `top_p`. If not, a study's default is dropped, and a value from the
    user is refused."""
    sampling_effort: Effort | None = None
    """The effort at which the model accepts a temperature and gives log-probabilities, if it does so at no other."""
    default_max_tokens: ClassVar[int | None] = None
    """Default limit of an answer, if the provider requires one."""
    calls_tools: bool = False
    """Whether the model can call tools."""
    json_mode: bool = True
    """Whether a reply can be requested as JSON without a schema."""
    context_tokens: int = 128_000
    """The model's context window."""
    caches_by_slot: ClassVar[bool] = False
    """Whether each slot has its own prompt cache, as in llama.cpp: concurrent calls then share no prefix."""
    written_factor: ClassVar[float] = 1.0
    """Price of a prompt token that is written to the vendor's prompt cache, as a multiple of the normal price."""
    at_once: int = 1
    """Maximum number of replies per request (`n`); the vendor bills the prompt once."""

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.provider, _, self.model = name.partition("/")
        self.options = self.parse_options(name, options or {})
        kind = provider_of(name)
        self.logprobs, self.continues = kind.logprobs, kind.continues
        """From `Provider`, for all its models; a client may set its own."""
        self.identity = name
        """The name, and anything else that distinguishes models of the same name (server, weights). Part of the cache
        key.
        """
        self.price = self.price_for(name, options or {})
        self.thinks = known_to_think(self.model)
        """Whether the model thinks before it answers, by its name or as seen in a reply."""
        self.gave_logprobs = False
        """True once a reply to a silent ballot had log-probabilities."""
        self._defaults = self.options.sampling()
        self._dropped = False
        self._check_capabilities()

    @classmethod
    def parse_options(cls, name: str, options: Mapping[str, Any]) -> ClientOptions:
        """Validate the options; a `ConfigError` names the first invalid one."""
        try:
            return cls.OptionsType.model_validate(dict(options))
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            if first["type"] == "extra_forbidden":
                names = ", ".join(cls.OptionsType.model_fields)
                raise ConfigError(f"{name}: unknown option '{key}' (known: {names})") from None
            which = f"option '{key}': " if key else ""
            raise ConfigError(
                f"{name}: {which}{first['msg'].removeprefix('Value error, ').replace('Input should be', 'must be')}"
            ) from None

    @classmethod
    def price_for(cls, name: str, options: Mapping[str, Any]) -> Price:
        """The model's price. A class method, so that a dry run needs no key."""
        parsed = cls.parse_options(name, options)
        return price_of(name, parsed.price_in, parsed.price_out, parsed.price_cached, cls.written_factor)

    def _check_capabilities(self) -> None:
        """ConfigError if an option was set that this model does not have."""
        options, plain = self.options, self.name
        if options.effort is not None and options.effort not in self.efforts:
            supported = f"supported: {', '.join(self.efforts)}" if self.efforts else "this model has no such option"
            raise ConfigError(f"{plain}: effort={options.effort} is not supported ({supported})")
        if not self.takes_temperature:
            for key in ("temperature", "top_p"):
                if getattr(options, key) is not None:
                    raise ConfigError(f"{plain} accepts no {key}; leave ?{key}= out{self.or_effort}")

    @property
    def or_effort(self) -> str:
        """The end of a message about `takes_temperature` or `logprobs`: the effort that would allow it."""
        return f", or append ?effort={self.sampling_effort}" if self.sampling_effort else ""

    @property
    def reads_silently(self) -> bool:
        """Whether silent ballots are read from probabilities: the model gives them and does not think first."""
        return self.logprobs and not self.thinks

    def for_wire(self, request: Request) -> Request:
        """The request as sent: with room to think, and without parameters that the model rejects."""
        if not (
            self.thinks
            or "think_tokens" in request.options
            or (self.default_max_tokens is not None and "max_tokens" not in request.options)
            or not self.takes_temperature
        ):
            return request
        options = dict(request.options)
        room = options.pop("think_tokens", None)
        if room is None:
            room = THINK_TOKENS if self.thinks and options.get("effort") != "none" else 0
        limit = options.get("max_tokens", self.default_max_tokens)
        if limit is not None:
            if room:
                # Prompts are counted at four characters per token, which may be too few: hence a third more. A
                # wrapped client's count is not used, since it may have to load a vocabulary.
                left = self.context_tokens - ModelTraits.count_tokens(self, request.messages) * 4 // 3 - limit
                limit += max(0, min(room, left))
            options["max_tokens"] = limit
        if not self.takes_temperature and options.keys() & {"temperature", "top_p"}:
            options = {key: value for key, value in options.items() if key not in ("temperature", "top_p")}
            if not self._dropped:
                self._dropped = True
                say(f"{self.name} accepts no temperature, so the study's is not sent")
        return request._replace(options=options)

    def count_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = []) -> int:
        """An estimate at four characters per token: exact counts would need each vendor's vocabulary."""
        return sum(4 + estimate_tokens(prompt_message(message).text) for message in messages)

    def remaining_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = []) -> int:
        return self.context_tokens - self.count_tokens(messages, tools=tools)

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False,
            function_calling=self.calls_tools,
            json_output=self.json_mode,
            family=ModelFamily.UNKNOWN,
            structured_output=self.native_schema,
            multiple_system_messages=False,
        )

    @property
    def capabilities(self) -> ModelInfo:
        return self.model_info
