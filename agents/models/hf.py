"""Models on transformers, in this process: `hf/<folder>`, `hf/smollm2` or `hf/<name on the hub>`. Made for GPUs.

Calls that wait are answered together, so that many conversations at once cost little more than one. Replies to a schema
are held to it, so they always parse unless they are cut off. What is drawn
depends on a call's own seed and not on its neighbours (rounding aside): the noise of every token is made from the seed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import torch
import transformers
from pydantic import BaseModel, Field

from parley.agents.errors import BadRequest, ConfigError, ParleyError, ServerFault
from parley.agents.models.base import Client, ClientOptions, Request
from parley.agents.models.catalogue import catalogue
from parley.agents.models.constrained import Grammars, Held
from parley.agents.models.cuda_graphs import cuda_graph_decoding
from parley.agents.models.reply import Reply
from parley.agents.models.transformers_weights import transformers_folder
from parley.agents.models.wire import from_completion, to_chat

GATHER = 0.01
"""Seconds to wait for company before a batch begins."""
TOP = 20
"""Alternatives told of each token, where they are asked for."""


class HfOptions(ClientOptions):
    max_connections: int = Field(256, ge=1, description="replies written together, at most")
    timeout: float = 1800.0
    device: str | None = Field(None, description="default: the GPU if there is one")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="of the weights; auto: as kept, on a CPU float32"
    )
    replay: bool = Field(
        True, description="on CUDA: record one step of writing and replay it (faster for small models)"
    )
    batch_tokens: int = Field(400_000, ge=256, description="tokens of prompts and replies held together, at most")
    context: int | None = Field(None, ge=64, description="tokens a conversation may have (default: the model's)")


class Waiting(NamedTuple):
    """A call on its way into a batch."""

    prompt: list[int]
    max_tokens: int
    temperature: float
    top_p: float
    seed: int
    logprobs: bool
    schema: type[BaseModel] | None
    done: asyncio.Future[dict[str, Any]]

    @property
    def kind(self) -> tuple[int, float, bool, bool]:
        """Calls of one kind can be answered together without one waiting for another."""
        return self.max_tokens, self.top_p, self.logprobs, self.schema is None


class HfClient(Client):
    OptionsType: ClassVar[type[ClientOptions]] = HfOptions
    options: HfOptions
    native_schema = True
    logprobs = True
    continues = True
    """A reply that ends with an assistant's message is continued: see `parley.agents.readout`."""

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        folder = Path(self.model).expanduser()
        self.source = str(folder) if folder.is_dir() else self.model
        if self.model in catalogue():
            self.identity = f"{name} {self.options.dtype} {catalogue()[self.model].sha256}"
        elif folder.is_dir():
            if not (folder / "config.json").is_file():
                raise ConfigError(f"'{name}' is no folder of transformers': it has no config.json")
            # A model trained again has the same name: its old replies must not come back from the cache.
            written = max(one.stat().st_mtime_ns for one in folder.iterdir())
            self.identity = f"{name} {self.options.dtype} {written}"
        elif self.model.count("/") > 1 or self.model.startswith((".", "/", "~")):
            raise ConfigError(f"there is no folder {folder}")
        self._loading = asyncio.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="transformers")
        self._model: Any = None
        self._tokenizer: Any = None
        self._waiting: list[Waiting] = []
        self._answering: asyncio.Task[None] | None = None
        self._fits = self.options.max_connections

    async def prepare(self) -> None:
        async with self._loading:
            if self._model is None:
                await asyncio.get_running_loop().run_in_executor(self._pool, self._load)

    def _load(self) -> None:
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        where = self.options.device or ("cuda" if torch.cuda.is_available() else "cpu")
        dtype = self.options.dtype
        if dtype == "auto" and where == "cpu":
            dtype = "float32"  # 16 bits are some hundred times slower there
        if self.model in catalogue():
            self.source = str(transformers_folder(self.model))
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(self.source, padding_side="left")
            model = transformers.AutoModelForCausalLM.from_pretrained(self.source, dtype=dtype)
            ends = model.generation_config.eos_token_id
            self._ends = {*(ends if isinstance(ends, list) else [ends]), self._tokenizer.eos_token_id} - {None}
            # Some models bring settings of their own (a repetition penalty, say), which nobody here asked for.
            model.generation_config = transformers.GenerationConfig()
            self._model = model.to(where).eval()
        except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
            raise ParleyError(f"{self.name} cannot be loaded ({' '.join(str(error).split())[:200]})") from None
        if not self._tokenizer.chat_template:
            raise ParleyError(f"{self.name}: its tokenizer has no chat template")
        self._grammars = Grammars(self._tokenizer, self._ends, model.config.vocab_size)
        longest = getattr(model.config, "max_position_embeddings", None)
        self.context_tokens = self.options.context or longest or self.context_tokens

    async def send(self, request: Request) -> Reply:
        if request.tools:
            raise BadRequest(f"{self.name} knows no tools")
        if self._model is None:
            await self.prepare()
        chat = to_chat(request.messages)
        begun = chat[-1]["role"] == "assistant"
        ids = self._tokenizer.apply_chat_template(
            chat, add_generation_prompt=not begun, continue_final_message=begun, return_dict=True
        )["input_ids"]
        options = request.options
        max_tokens = int(options.get("max_tokens", 512))
        if len(ids) + max_tokens > self.context_tokens:
            raise BadRequest(f"{self.name}: {len(ids)} tokens and a reply of {max_tokens} pass {self.context_tokens}")
        done: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append(
            Waiting(
                list(ids),
                max_tokens,
                float(options.get("temperature", 1.0)),
                float(options.get("top_p", 1.0)),
                int(options.get("seed", 0)),
                bool(options.get("logprobs", False)),
                request.schema if isinstance(request.schema, type) else None,
                done,
            )
        )
        if self._answering is None or self._answering.done():
            self._answering = asyncio.create_task(self._answer_all())
        try:
            async with asyncio.timeout(self.options.timeout):
                return from_completion(await done)
        except TimeoutError:
            raise ServerFault(f"{self.name}: no answer within {self.options.timeout:g} s") from None

    async def _answer_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            await asyncio.sleep(GATHER)
            batch = self._next_batch()
            try:
                found = await loop.run_in_executor(self._pool, self._write, batch)
            except torch.OutOfMemoryError:
                if len(batch) == 1:
                    _fail(batch, ParleyError(f"{self.name}: the memory does not hold a single conversation"))
                self._fits = max(1, len(batch) // 2)
                self._waiting = [one for one in batch if not one.done.done()] + self._waiting
            except ParleyError as error:
                _fail(batch, ParleyError(f"{self.name}: {error}"))
            except Exception as error:
                _fail(batch, ParleyError(f"{self.name}: {' '.join(str(error).split())[:200]}"))
            else:
                for one, data in zip(batch, found, strict=True):
                    if not one.done.done():
                        one.done.set_result(data)

    def _next_batch(self) -> list[Waiting]:
        """The longest-waiting call, and those of its kind and about its length that fit beside it."""
        self._waiting = [one for one in self._waiting if not one.done.done()]  # cancelled calls are not answered
        if not self._waiting:
            return []
        first = self._waiting[0]
        alike = [one for one in self._waiting if one.kind == first.kind]
        alike.sort(key=lambda one: (one is not first, abs(len(one.prompt) - len(first.prompt))))
        batch: list[Waiting] = []
        longest = 0
        for one in alike[: self._fits]:
            longest = max(longest, len(one.prompt) + one.max_tokens)
            if batch and longest * (len(batch) + 1) > self.options.batch_tokens:
                break
            batch.append(one)
        chosen = set(map(id, batch))
        self._waiting = [one for one in self._waiting if id(one) not in chosen]
        return batch

    def _write(self, batch: Sequence[Waiting]) -> list[dict[str, Any]]:
        if not batch:
            return []
        where = self._model.device
        longest = max(len(one.prompt) for one in batch)
        pad = self._tokenizer.pad_token_id if self._tokenizer.pad_token_id is not None else min(self._ends)
        rows = [[pad] * (longest - len(one.prompt)) + one.prompt for one in batch]
        mask = [[0] * (longest - len(one.prompt)) + [1] * len(one.prompt) for one in batch]
        schemas = [one.schema for one in batch]
        held = Held(self._grammars, schemas) if any(schemas) else None
        draw = Draw(batch, longest, where, held)
        length = longest + batch[0].max_tokens
        with torch.inference_mode(), cuda_graph_decoding(self._model, length, wanted=self.options.replay) as fast:
            made = self._model.generate(
                input_ids=torch.tensor(rows, device=where),
                attention_mask=torch.tensor(mask, device=where),
                max_new_tokens=batch[0].max_tokens,
                do_sample=False,
                eos_token_id=sorted(self._ends),
                pad_token_id=pad,
                logits_processor=transformers.LogitsProcessorList([draw]),
                **fast,
            )
        alternatives = draw.alternatives()
        return [
            self._completion(one, said, alternatives[row] if alternatives else None)
            for row, (one, said) in enumerate(zip(batch, made[:, longest:].tolist(), strict=True))
        ]

    def _completion(self, one: Waiting, said: list[int], weighed: Any) -> dict[str, Any]:
        """A reply in the shape that servers give."""
        end = next((at for at, token in enumerate(said) if token in self._ends), None)
        ids = said if end is None else said[:end]
        content = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        choice: dict[str, Any] = {
            "message": {"content": content},
            "finish_reason": "length" if end is None else "stop",
        }
        if weighed is not None:
            choice["logprobs"] = {
                "content": [
                    {
                        "token": self._text(token),
                        "logprob": own,
                        "top_logprobs": [
                            {"token": self._text(other), "logprob": weight} for other, weight in zip(*top, strict=True)
                        ],
                    }
                    for token, (own, *top) in zip(ids, weighed, strict=False)
                ]
            }
        usage = {"prompt_tokens": len(one.prompt), "completion_tokens": len(ids if end is None else said[: end + 1])}
        return {"choices": [choice], "usage": usage}

    def _text(self, token: int) -> str:
        return str(self._tokenizer.decode([token], clean_up_tokenization_spaces=False))

    async def close(self) -> None:
        self._model = None
        self._pool.shutdown(wait=False, cancel_futures=True)


def _fail(batch: Sequence[Waiting], error: Exception) -> None:
    for one in batch:
        if not one.done.done():
            one.done.set_exception(error)


class Draw(transformers.LogitsProcessor):  # type: ignore[misc]
    """Makes the likeliest token the one to take: by adding noise (Gumbel's) that each call's seed and place decide."""

    def __init__(self, batch: Sequence[Waiting], begun: int, where: Any, held: Held | None) -> None:
        self.begun, self.keep, self.held = begun, batch[0].logprobs, held
        self.seeds = torch.tensor([one.seed % 2**63 for one in batch], device=where)
        self.temperatures = torch.tensor([one.temperature for one in batch], device=where)
        self.warm = any(one.temperature > 0 for one in batch)
        top_p = batch[0].top_p
        self.nucleus = transformers.TopPLogitsWarper(top_p) if top_p < 1 else None
        self.kept: list[tuple[Any, Any, Any]] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        heat, asked = self.temperatures[:, None], scores
        step = input_ids.shape[1] - self.begun
        if self.held is not None:
            scores = self.held.mask(scores, input_ids[:, -1].tolist() if step else None)
        if self.warm:
            warm = scores / heat.clamp(min=1e-6)
            if self.nucleus is not None:
                warm = self.nucleus(input_ids, warm)
            noise = gumbel(self.seeds, step, scores.shape[1])
            drawn = torch.where(heat > 0, warm + noise, scores)
        else:
            drawn = scores
        if self.keep:
            logs = torch.log_softmax(asked.float(), dim=-1)
            top = logs.topk(min(TOP, scores.shape[1]), dim=-1)
            self.kept.append((logs.gather(1, drawn.argmax(-1, keepdim=True))[:, 0], top.indices, top.values))
        return drawn

    def alternatives(self) -> list[list[tuple[float, list[int], list[float]]]]:
        """For each call, of each token: its own log-probability, and the likeliest with theirs."""
        steps = [(own.tolist(), ids.tolist(), values.tolist()) for own, ids, values in self.kept]
        rows = range(len(self.seeds)) if steps else ()
        return [[(own[row], ids[row], values[row]) for own, ids, values in steps] for row in rows]


GOLDEN = -0x61C8864680B583EB
"""Splitmix64's step, as a signed number."""


def mixed(x: Any) -> Any:
    """Splitmix64's scrambling of a counter (shifts of signed numbers bring the sign along: it is cut off)."""
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -0x40A7B892E31B1A47
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -0x6B2FB644ECCEEE15
    return x ^ ((x >> 31) & 0x1FFFFFFFF)


def gumbel(seeds: Any, step: int, width: int) -> Any:
    """Noise for each seed and token, made from seed, step and token as counters, so that batches do not matter."""
    begun = mixed(seeds + torch.tensor(step + 1, device=seeds.device) * GOLDEN)
    tokens = torch.arange(1, width + 1, device=seeds.device)
    bits = (mixed(begun[:, None] + (tokens * GOLDEN)[None]) >> 41) & 0x7FFFFF
    uniform = (bits.float() + 0.5) / 2**23  # in 32 bits this is never 0 and never 1
    return -torch.log(-torch.log(uniform))
