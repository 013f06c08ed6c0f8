"""Models that run in this process, on llama.cpp (xllamacpp): `local/smollm2`, `local/<path to a .gguf>`, or
`local/<folder>` of a model that `parley train` made.

Replies to a schema are held to it by a grammar, so they always parse. Calls from many conversations share one
loaded model: llama.cpp batches them over its slots and keeps the prefixes it has already read.
"""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

# Before llama.cpp's threads start: waiting threads that spin halve the speed of a machine that does other work too.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
import xllamacpp
from autogen_core.models import RequestUsage
from pydantic import BaseModel, Field

from parley.agents.errors import BadRequest, ConfigError, ParleyError, ServerFault
from parley.agents.models.base import Client, ClientOptions, Request
from parley.agents.models.catalogue import CatalogueEntry, catalogue, fetch, is_fetched, weights_path
from parley.agents.models.dequantize import expanded
from parley.agents.models.reply import Reply
from parley.agents.models.self_debias import Contrast, TokenChoice, decode, read_step
from parley.agents.models.wire import from_completion, strict_schema, to_chat

SLOT_TOKENS = 2048
T = TypeVar("T")


def _grammar(schema: type[BaseModel]) -> str:
    """The schema as a grammar with white space fixed: free white space costs a third of a reply's tokens."""
    spacing = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
    grammar = xllamacpp.json_schema_to_grammar(
        {**strict_schema(schema.model_json_schema(), lengths=True), "x-guidance": spacing}
    )
    assert isinstance(grammar, str), "xllamacpp gives grammars as text"
    return grammar


def _refuse_error(name: str, data: Mapping[str, Any]) -> None:
    if "error" in data:
        raise BadRequest(f"{name}: {data['error'].get('message', data['error'])}")


def _weights(name: str, path: Path) -> Path:
    """The .gguf file that a path means."""
    if path.is_dir():
        path = path / "model.gguf"
        if not path.is_file():
            raise ConfigError(f"'{name}' is a folder without model.gguf, which `parley train` writes")
    if path.suffix != ".gguf":
        known = ", ".join(f"local/{known}" for known in catalogue())
        raise ConfigError(f"'{name}' is neither in the catalogue ({known}) nor a .gguf file, nor a folder with one")
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ConfigError(f"{path} is not a GGUF file")
    return path


class LocalOptions(ClientOptions):
    max_connections: int = Field(12, ge=1, le=64, description="slots: conversations that are batched together")
    timeout: float = 600.0
    threads: int = Field(default_factory=lambda: os.cpu_count() or 2, ge=1)
    context: int | None = Field(None, ge=256, description="tokens a conversation may have")
    reuse_mb: int = Field(512, ge=0, description="memory for conversations that wait while their slot serves others")
    expand: bool | None = Field(None, description="unpack the weights to 32 bits (default: on ARM, where it is faster)")


class LocalClient(Client):
    OptionsType: ClassVar[type[ClientOptions]] = LocalOptions
    options: LocalOptions
    native_schema = True
    logprobs = True
    next_tokens = True
    continues = True
    """A reply that ends with an assistant's message is continued: see `parley.agents.readout`."""

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        self.entry: CatalogueEntry | None = catalogue().get(self.model)
        if self.entry is None:
            self.path = _weights(name, Path(self.model).expanduser())
            written = self.path.stat()
            # A model trained again has the same name and size: its old replies must not come back from the cache.
            self.identity = f"{name} {written.st_size} {written.st_mtime_ns}"
        else:
            if not self.entry.automatic and not is_fetched(self.model):
                size = self.entry.size / 1e6
                raise ConfigError(f"{name} is not here yet: parley models fetch {self.model} ({size:.0f} MB)")
            self.path = weights_path(self.model)
            self.identity = f"{name} {self.entry.sha256}"
        self.context_tokens = self.options.context or (self.entry.context if self.entry else SLOT_TOKENS)
        self._pool = ThreadPoolExecutor(self.options.max_connections, thread_name_prefix="llama")
        self._server: Any = None
        self._loading = asyncio.Lock()
        self._grammars: dict[type, str] = {}

    async def prepare(self) -> None:
        async with self._loading:
            if self._server is None:
                self._server = await asyncio.get_running_loop().run_in_executor(self._pool, self._load)

    def _load(self) -> Any:
        path = fetch(self.model) if self.entry else self.path
        unpack = self.options.expand
        if unpack is None:
            unpack = self.model == "smollm2" and platform.machine() in ("aarch64", "arm64")
        if unpack:
            path = expanded(path)
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_parallel = self.options.max_connections
        params.n_ctx = self.context_tokens * self.options.max_connections
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self.options.threads
        # llama.cpp would keep 8 GiB of conversations that are over. What waits for a slot is worth keeping: with twice
        # as many conversations as slots, three times as many tokens are read without it (docs/serving.md).
        params.cache_ram_mib = self.options.reuse_mb
        # llama.cpp's library opens its HTTP port on loopback, whether wanted or not, and answers pages of any origin:
        # nobody has the key to it, and we ask without it.
        params.api_keys = [secrets.token_urlsafe(32)]
        params.ui = params.endpoint_slots = False
        params.warmup = False
        params.verbosity = -1
        try:
            return xllamacpp.Server(params)
        except Exception as error:
            raise ParleyError(f"{self.name}: {path} cannot be loaded ({' '.join(str(error).split())})") from None

    def body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "messages": to_chat(request.messages),
            **request.options,
            "cache_prompt": True,
        }
        body.setdefault("max_tokens", 512)
        if body.pop("logprobs", False):
            body.update(logprobs=True, top_logprobs=20)
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
            raise BadRequest(f"{self.name} knows no tools")
        if self._server is None:
            await self.prepare()
        if "contrast_decay" in request.options:
            return await self._in_thread(partial(self._contrast, request))
        data = await self._in_thread(partial(self._server.handle_chat_completions, self.body(request)))
        _refuse_error(self.name, data)
        return from_completion(data)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.options.timeout):
                return await loop.run_in_executor(self._pool, work)
        except TimeoutError:
            raise ServerFault(f"{self.name}: no answer within {self.options.timeout:g} s") from None
        except RuntimeError as error:
            raise ServerFault(f"{self.name}: {' '.join(str(error).split())[:200]}") from None

    def _contrast(self, request: Request) -> Reply:
        """A text (the last message) continued away from another (the first)."""
        biased, plain = (str(message.content) for message in request.messages)
        options = request.options
        how = Contrast(
            decay=float(options["contrast_decay"]),
            keep=int(options["contrast_keep"]),
            max_tokens=int(options.get("max_tokens", 20)),
            temperature=float(options.get("temperature", 1.0)),
            seed=int(options.get("seed", 0)),
        )
        read = 0

        def step(drawn: list[int]) -> TokenChoice:
            nonlocal read
            body = {
                "prompt": [[text, *drawn] if drawn else text for text in (plain, biased)],
                "max_tokens": 1,
                "logprobs": how.keep,
                "n_probs": how.keep,
                "cache_prompt": True,
            }
            data = self._server.handle_completions(body)
            _refuse_error(self.name, data)
            read = read or data["usage"]["prompt_tokens"]  # of the first prompt only; the other is taken by its length
            return read_step(data)

        said = decode(step, how)
        return Reply(
            finish_reason="stop" if said.ended else "length",
            content=said.text,
            usage=RequestUsage(read + round(read * len(biased) / max(1, len(plain))), 2 * said.tokens),
            cached=False,
        )

    async def close(self) -> None:
        self._server = None
        self._pool.shutdown(wait=False, cancel_futures=True)
