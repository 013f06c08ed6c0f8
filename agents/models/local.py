"""Models that run in this process, with llama.cpp (xllamacpp): `local/smollm2` or `local/<path to a .gguf>`.

Structured replies are constrained by a grammar, so they always parse. Calls from many conversations share one loaded
model: llama.cpp batches them over its slots and caches their prefixes. Calls for one token take turns in one slot, so
that a prefix shared with the previous prompt is not read again.

Self-Debias (Schick, Udupa and Schütze 2021) is decoded here: at each step the model gives two distributions of the next
token, after the text, and after the same text behind a prefix that asks for the bias. With Δ = p(token) − p(token,
biased), a token that the prefix makes more likely (Δ < 0) is scaled by exp(λ·Δ), but never below a floor; all others
keep their weight. The result is renormalized and sampled. Only the `top_k` most likely tokens of each distribution are
known (all of them, if `top_k` is the vocabulary's size), and the next token is sampled from those of the plain one. A
token that is missing from the biased list counts as 0 there, so its Δ is too high by at most the smallest probability
in that list.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

# Set before llama.cpp starts its threads: threads that wait by spinning halve the speed of a machine with other work.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
import xllamacpp
from autogen_core.models import AssistantMessage, RequestUsage
from pydantic import BaseModel, Field

from parley.agents.models.base import Client
from parley.agents.models.catalogue import CatalogueEntry, catalogue, fetch, is_fetched, weights_path, weights_sha256
from parley.agents.models.compatible import Arrived
from parley.agents.models.reply import Reply
from parley.agents.models.request import FLOOR, ClientOptions, Request
from parley.agents.models.streaming import Arriving, Streams
from parley.agents.models.weights import NumberType, converted, copy_path, fastest_type
from parley.agents.models.wire import (
    READ_TOKENS,
    TOP_TOKENS,
    decoding_schema,
    from_completion,
    to_chat,
    without_prefill,
)
from parley.base.errors import BadRequest, ConfigError, ParleyError, ServerFault

DEFAULT_CONTEXT = 2048
"""Context window per slot of a model that is not in the catalogue."""
MOST_ASKED = 50
"""Maximum attempts per step of Self-Debias: llama.cpp gives no log-probabilities if the token that it draws is
part of a character."""
T = TypeVar("T")


def _grammar(schema: type[BaseModel]) -> str:
    grammar = xllamacpp.json_schema_to_grammar(decoding_schema(schema))
    assert isinstance(grammar, str), "xllamacpp gives grammars as text"
    return grammar


def _raise_error(name: str, data: Mapping[str, Any]) -> None:
    if "error" in data:
        message = str(data["error"].get("message", data["error"]))
        raise BadRequest(f"{name}: {message.replace(', try increasing it', '; append ?context=8192, or more')}")


def _weights_file(name: str, path: Path) -> Path:
    """The .gguf file at a path."""
    if path.is_dir():
        raise ConfigError(f"'{name}' is a folder, and llama.cpp reads .gguf files: a trained model is hf/{path}")
    if path.suffix != ".gguf":
        listed = ", ".join(f"local/{model}" for model in catalogue())
        raise ConfigError(f"'{name}' is neither in the catalogue ({listed}) nor a .gguf file")
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ConfigError(f"{path} is not a GGUF file")
    return path


REUSE_MB = 512
"""Memory for the prompts of conversations that wait for a slot."""


class LocalOptions(ClientOptions):
    """The options of embedded models."""

    max_connections: int = Field(12, ge=1, le=64, description="slots: how many calls are batched together")
    timeout: float = 600.0
    threads: int = Field(
        default_factory=lambda: os.cpu_count() or 2, ge=1, description="CPU threads (default: all cores)"
    )
    context: int | None = Field(None, ge=256, description="context window per slot, in tokens")
    weights: NumberType | Literal["stored"] | None = Field(
        None, description="type of the weights (default: as stored; SmolLM2's are converted to the fastest)"
    )


class LocalClient(Streams, Client):
    """A model in this process, on llama.cpp."""

    OptionsType: ClassVar[type[ClientOptions]] = LocalOptions
    options: LocalOptions
    native_schema = True
    next_tokens = True
    caches_by_slot = True
    default_max_tokens = 512

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        self.entry: CatalogueEntry | None = catalogue().get(self.model)
        if self.entry is None:
            self.path = _weights_file(name, Path(self.model).expanduser())
            # The hash, not the file's time: a model retrained to the same weights shares cached replies, any other
            # does not.
            self.identity = f"{name} {weights_sha256(name)}"
        else:
            if not self.entry.automatic and not is_fetched(self.model):
                size = self.entry.size / 1e6
                raise ConfigError(f"{name} is not downloaded yet: run parley models fetch {self.model} ({size:.0f} MB)")
            self.path = weights_path(self.model)
            self.identity = f"{name} {self.entry.sha256}"
        if self.options.weights:
            self.identity += f" {self.options.weights}"
        self.context_tokens = self.options.context or (self.entry.context if self.entry else DEFAULT_CONTEXT)
        self._pool = ThreadPoolExecutor(self.options.max_connections, thread_name_prefix="llama")
        self._server: Any = None
        self.preparing = f"loading {self.name}"
        self._loading = asyncio.Lock()
        self._one_token = asyncio.Lock()
        self._grammars: dict[type, str] = {}

    async def prepare(self) -> None:
        async with self._loading:
            if self._server is None:
                self._server = await asyncio.get_running_loop().run_in_executor(self._pool, self._load)

    def _load(self) -> Any:
        path = fetch(self.model) if self.entry else self.path
        weights = self.options.weights or (fastest_type() if self.model == "smollm2" else "stored")
        if weights != "stored":
            if not copy_path(path, weights).exists():
                self.preparing = f"converting the weights of {self.name} for this processor, once"
            path = converted(path, weights)
        self.preparing = f"loading {self.name}"
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_parallel = self.options.max_connections
        params.n_ctx = self.context_tokens * self.options.max_connections
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self.options.threads
        # llama.cpp's default is 8 GiB, mostly for finished conversations. Without a cache, three times as many tokens
        # are read when there are twice as many conversations as slots.
        params.cache_ram_mib = REUSE_MB
        # llama.cpp's library always opens an HTTP port on loopback and answers requests of any origin. A random key
        # locks it; our calls do not go through HTTP.
        params.api_keys = [secrets.token_urlsafe(32)]
        params.ui = params.endpoint_slots = False
        params.warmup = False
        params.verbosity = -1
        try:
            return xllamacpp.Server(params)
        except Exception as error:
            raise ParleyError(f"{self.name}: {path} cannot be loaded ({' '.join(str(error).split())})") from None

    def body(self, request: Request) -> dict[str, Any]:
        """The request in the format of llama.cpp's chat completions."""
        body: dict[str, Any] = {
            "messages": to_chat(request.messages),
            **request.options,
            "cache_prompt": True,
        }
        body.setdefault("max_tokens", self.default_max_tokens)
        if body["max_tokens"] == 1:
            body["id_slot"] = 0
        if body.pop("logprobs", False):
            body.update(logprobs=True, top_logprobs=READ_TOKENS if body["max_tokens"] == 1 else TOP_TOKENS)
        if isinstance(request.schema, type):
            grammar = self._grammars.get(request.schema)
            if grammar is None:
                grammar = self._grammars[request.schema] = _grammar(request.schema)
            body["grammar"] = grammar
        elif request.schema:
            body["response_format"] = {"type": "json_object"}
        return body

    async def send(self, request: Request) -> Reply:
        if request.tools:
            raise BadRequest(f"{self.name} does not support tools")
        if self._server is None:
            await self.prepare()
        if "contrast_decay" in request.options:
            return await self._in_thread(partial(self._self_debias, request))
        work = partial(self._server.handle_chat_completions, self.body(request))
        if request.options.get("max_tokens") == 1:
            async with self._one_token:
                data = await self._in_thread(work)
        else:
            data = await self._in_thread(work)
        _raise_error(self.name, data)
        return without_prefill(from_completion(data), request.messages)

    async def events(self, request: Request) -> AsyncGenerator[dict[str, Any], None]:
        if self._server is None:
            await self.prepare()
        body = {**self.body(request), "stream": True, "stream_options": {"include_usage": True}}
        loop, arriving = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any] | None]()

        def arrive(event: dict[str, Any] | None) -> None:
            loop.call_soon_threadsafe(arriving.put_nowait, event)

        def work() -> None:
            try:
                self._server.handle_chat_completions(body, arrive)
            finally:
                arrive(None)

        generating = asyncio.ensure_future(self._in_thread(work))
        while (event := await arriving.get()) is not None:
            _raise_error(self.name, event)
            yield event
        await generating

    def arriving(self) -> Arriving:
        return Arrived(_chunk_text)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.options.timeout):
                return await loop.run_in_executor(self._pool, work)
        except TimeoutError:
            raise self.timed_out() from None
        except RuntimeError as error:
            raise ServerFault(f"{self.name}: {' '.join(str(error).split())[:200]}") from None

    def _self_debias(self, request: Request) -> Reply:
        """The continuation of a text (the last message), debiased against the biased prompt (the first message)."""
        biased, plain = (str(message.content) for message in request.messages)
        options = request.options
        settings = DebiasSettings(
            decay=float(options["contrast_decay"]),
            top_k=int(options["contrast_keep"]),
            max_tokens=int(options["max_tokens"]),
            temperature=float(options.get("temperature", 1.0)),
            seed=int(options.get("seed", 0)),
        )
        prompt_tokens = 0

        def step(tokens: list[int]) -> NextTokens:
            nonlocal prompt_tokens
            body = {
                "prompt": [[text, *tokens] if tokens else text for text in (plain, biased)],
                "max_tokens": 1,
                "logprobs": settings.top_k,
                "n_probs": settings.top_k,
                "cache_prompt": True,
            }
            for attempt in range(MOST_ASKED):
                data = self._server.handle_completions({**body, "seed": attempt})
                _raise_error(self.name, data)
                if all(choice["logprobs"] for choice in data["choices"]):
                    break
            else:
                raise ServerFault(f"{self.name}: llama.cpp gave no log-probabilities")
            # llama.cpp counts the plain prompt only; the biased one is estimated below, from its length.
            prompt_tokens = prompt_tokens or data["usage"]["prompt_tokens"]
            return read_step(data)

        continuation = decode(step, settings)
        biased_tokens = round(prompt_tokens * len(biased) / max(1, len(plain)))
        return Reply(
            finish_reason="stop" if continuation.ended else "length",
            content=continuation.text,
            usage=RequestUsage(prompt_tokens + biased_tokens, 2 * continuation.tokens),
            cached=False,
        )

    def streams(self, request: Request) -> bool:
        # A continued or debiased text is not a chat's reply.
        continued = isinstance(request.messages[-1], AssistantMessage)
        return super().streams(request) and not continued and "contrast_decay" not in request.options

    async def close(self) -> None:
        self._server = None
        self._pool.shutdown(wait=False, cancel_futures=True)


def _chunk_text(event: Mapping[str, Any], arrived: Arrived) -> str:
    """The text of one of llama.cpp's events."""
    arrived.usage = event.get("usage") or arrived.usage
    choice: dict[str, Any] = next(iter(event.get("choices") or ()), {})
    arrived.finish = choice.get("finish_reason") or arrived.finish
    return str((choice.get("delta") or {}).get("content") or "")


Distribution = Mapping[int, float]


class DebiasSettings(NamedTuple):
    """Settings for continuing a text."""

    decay: float
    """The paper's λ; 0 leaves the model's distribution unchanged."""
    top_k: int
    """Number of most likely tokens used from each distribution."""
    max_tokens: int
    temperature: float
    seed: int


class NextTokens(NamedTuple):
    """The two distributions of the next token, and the text of each token."""

    plain: Distribution
    biased: Distribution
    token_bytes: Mapping[int, bytes]


class Continuation(NamedTuple):
    """A generated text."""

    text: str
    tokens: int
    """Number of generated tokens."""
    ended: bool
    """Whether the model ended it, rather than `max_tokens`."""


def debiased(plain: Distribution, biased: Distribution, decay: float) -> dict[int, float]:
    """The distribution to sample from: it sums to 1 over the tokens of `plain`."""
    weights = {
        token: p * max(FLOOR, math.exp(decay * min(0.0, p - biased.get(token, 0.0)))) for token, p in plain.items()
    }
    total = sum(weights.values())
    return {token: weight / total for token, weight in weights.items()}


def sample(distribution: Distribution, temperature: float, rng: random.Random) -> int:
    """Sample one token; at temperature 0, the most likely one."""
    if temperature == 0:
        return max(distribution, key=lambda token: (distribution[token], -token))
    tokens = sorted(distribution)
    return rng.choices(tokens, [distribution[token] ** (1 / temperature) for token in tokens])[0]


def decode(step: Callable[[list[int]], NextTokens], settings: DebiasSettings) -> Continuation:
    """Generate until the end token (whose text is empty) or `max_tokens`.

    Args:
        step: returns the distributions of the next token, given the tokens generated so far.
        settings: how to sample.
    """
    rng = random.Random(settings.seed)
    tokens: list[int] = []
    text = b""
    while len(tokens) < settings.max_tokens:
        candidates = step(tokens)
        token = sample(debiased(candidates.plain, candidates.biased, settings.decay), settings.temperature, rng)
        if not candidates.token_bytes[token]:
            return Continuation(text.decode("utf-8", "replace"), len(tokens), True)
        tokens.append(token)
        text += candidates.token_bytes[token]
    return Continuation(text.decode("utf-8", "ignore"), len(tokens), False)


def read_step(data: Mapping[str, Any]) -> NextTokens:
    """llama.cpp's completion of two prompts, the plain one first."""
    first, second = sorted(data["choices"], key=lambda choice: int(choice["index"]))
    tops = [choice["logprobs"]["content"][0]["top_logprobs"] for choice in (first, second)]
    plain, biased = ({int(top["id"]): math.exp(top["logprob"]) for top in entries} for entries in tops)
    return NextTokens(plain, biased, {int(top["id"]): bytes(top["bytes"]) for top in tops[0]})
