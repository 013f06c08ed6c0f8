"""Models on transformers, in this process: `hf/<folder>`, `hf/smollm2` or `hf/<name on the hub>`. Made for GPUs.

Concurrent calls are batched, so that many conversations cost little more than one. Structured replies are constrained
to their schema, so they always parse unless `max_tokens` cuts them off. A sampled reply depends on the call's seed and
not on the rest of its batch (rounding aside): the sampling noise is computed from the seed. Calls for one token are not
generated, but read (`parley.agents.models.next_token`).
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import torch
import transformers
from pydantic import BaseModel, Field
from tokenizers.decoders import ByteLevel
from torch.nn.functional import rms_norm

from parley.agents.models.base import Client
from parley.agents.models.catalogue import catalogue, weights_sha256
from parley.agents.models.constrained import ConstrainedBatch, Grammars
from parley.agents.models.next_token import next_token_logits, reads_trees
from parley.agents.models.reply import Reply
from parley.agents.models.request import ClientOptions, Request
from parley.agents.models.seeded_sampler import Debiasing, SeededSampler
from parley.agents.models.thoughts import opened_by_template
from parley.agents.models.weights import load_base, load_folder, template_sha256
from parley.agents.models.wire import READ_TOKENS, TOP_TOKENS, from_completion, may_answer, to_chat
from parley.base.errors import BadRequest, ConfigError, ParleyError
from parley.base.text import plural

GATHER_SECONDS = 0.01
"""An incomplete batch starts if no call has arrived for this long and none is being prepared."""
MAX_GATHER_SECONDS = 2.0
SWITCH_SECONDS = 1e-4
"""How long other Python threads run before the one that feeds the GPU gets its turn. It asks some 2,000 times a pass;
Python's default of 5 ms would leave the GPU idle.
"""
BATCH_TOKENS = 400_000
"""Maximum tokens of all prompts and replies in a batch."""
MAX_BATCH = 256
"""Calls in a batch: half of the calls in progress, so that the others can be prepared and recorded meanwhile."""


class HfOptions(ClientOptions):
    """The options of models on transformers."""

    max_connections: int = Field(512, ge=1, description=f"number of concurrent calls; up to {MAX_BATCH} make a batch")
    timeout: float = 1800.0
    device: str | None = Field(None, description="torch device (default: the GPU if there is one)")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="type of the weights; auto: as saved, float32 on a CPU"
    )
    context: int | None = Field(None, ge=64, description="context window in tokens (default: the model's)")


class TokenText(NamedTuple):
    """A token of the vocabulary."""

    text: str
    bytes: list[int]
    """Bytes of the token; they differ from those of `text` if it is part of a character."""
    answers: bool
    """Whether a ballot may ask for it."""


PRINTED = [*range(33, 127), *range(161, 173), *range(174, 256)]
BYTES = {chr(byte): byte for byte in PRINTED} | {
    chr(256 + number): byte for number, byte in enumerate(byte for byte in range(256) if byte not in PRINTED)
}
"""Bytes by the characters that stand for them in byte-level tokenizers."""
PLAIN_NORMS = ("LlamaRMSNorm", "MistralRMSNorm", "Qwen2RMSNorm", "Qwen3RMSNorm")


def join_norms(model: Any) -> None:
    """Compute each plain RMS norm by one kernel instead of six, which saves a seventh of a pass over short prompts."""
    for module in model.modules():
        if type(module).__name__ in PLAIN_NORMS:
            weight, epsilon = module.weight, module.variance_epsilon
            module.forward = partial(rms_norm, normalized_shape=weight.shape, weight=weight, eps=epsilon)


class PendingCall(NamedTuple):
    """A call that waits for a batch."""

    prompt: list[int]
    """Token ids."""
    max_tokens: int
    temperature: float
    top_p: float
    seed: int
    logprobs: bool
    schema: type[BaseModel] | None
    completion: asyncio.Future[dict[str, Any]]
    """The reply, in OpenAI's format."""
    against: Sequence[int] = ()
    """Token ids of the biased prompt of Self-Debias."""
    decay: float = 0.0
    """Its λ."""

    @property
    def group(self) -> tuple[int, float, bool, bool, bool, float]:
        """Key of calls that can share a batch without waiting for each other."""
        return self.max_tokens, self.top_p, self.logprobs, self.schema is None, bool(self.against), self.decay

    @property
    def read(self) -> bool:
        """Whether the call needs only a forward pass over the prompt."""
        return self.max_tokens == 1 and not self.against


class HfClient(Client):
    """A model in this process, on transformers."""

    OptionsType: ClassVar[type[ClientOptions]] = HfOptions
    options: HfOptions
    native_schema = True
    next_tokens = True
    default_max_tokens = 512

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        folder = Path(self.model).expanduser()
        self.source = str(folder) if folder.is_dir() else self.model
        if self.model in catalogue():
            self.identity = f"{name} {self.options.dtype} {catalogue()[self.model].sha256}"
        elif folder.is_dir():
            if not (folder / "config.json").is_file():
                raise ConfigError(f"'{name}' is not a transformers folder: it has no config.json")
            # The hash, not the file's time: a model retrained to the same weights shares cached replies, any other
            # does not.
            self.identity = f"{name} {self.options.dtype} {weights_sha256(name)} {template_sha256(folder)}"
        elif self.model.count("/") > 1 or self.model.startswith((".", "/", "~")):
            raise ConfigError(f"there is no folder {folder}")
        self._loading = asyncio.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="transformers")
        self._encoder = ThreadPoolExecutor(1, thread_name_prefix="tokenizer")
        self._model: Any = None
        self._tokenizer: Any = None
        self._pending: list[PendingCall] = []
        self._batching: asyncio.Task[None] | None = None
        self._texts: list[tuple[str, asyncio.Future[list[int]]]] = []
        self._encoding: asyncio.Task[None] | None = None
        self._tokens: dict[int, TokenText] = {}
        self.preparing = f"loading {self.name}"
        self._max_batch = min(self.options.max_connections, MAX_BATCH)

    async def prepare(self) -> None:
        async with self._loading:
            if self._tokenizer is None:
                await asyncio.get_running_loop().run_in_executor(self._pool, self._load)

    def _load(self) -> None:
        device = self.options.device or ("cuda" if torch.cuda.is_available() else "cpu")
        dtype = self.options.dtype
        if dtype == "auto" and device == "cpu":
            dtype = "float32"  # 16 bits are about a hundred times slower on a CPU
        try:
            shipped = self.model in catalogue()
            model, tokenizer = (
                load_base(self.model, dtype, device) if shipped else load_folder(self.source, dtype, device)
            )
            ends = model.generation_config.eos_token_id
            # Some models come with sampling settings, such as a repetition penalty, that the user did not request.
            model.generation_config = transformers.GenerationConfig()
            self._model = model.eval()
        except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
            raise ParleyError(f"{self.name} cannot be loaded ({' '.join(str(error).split())[:200]})") from None
        if device != "cpu":
            sys.setswitchinterval(SWITCH_SECONDS)
            join_norms(model)
        if not tokenizer.chat_template:
            raise ParleyError(f"{self.name}: the tokenizer has no chat template")
        tokenizer.padding_side = "left"
        self._ends = {*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id} - {None}
        max_positions = getattr(model.config, "max_position_embeddings", None)
        self.context_tokens = self.options.context or max_positions or self.context_tokens
        self._reads_trees = reads_trees(model)
        self._tokenizer = tokenizer

    @cached_property
    def _grammars(self) -> Grammars:
        """The grammar compiler, made for the first schema, since it takes more than a second."""
        return Grammars(self._tokenizer, self._ends, self._model.config.vocab_size)

    async def send(self, request: Request) -> Reply:
        if request.tools:
            raise BadRequest(f"{self.name} does not support tools")
        if self._tokenizer is None:
            await self.prepare()
        chat, options, against = to_chat(request.messages), request.options, list[int]()
        prefill = chat[-1]["role"] == "assistant"
        debiased = "contrast_decay" in options
        if debiased:  # the model continues the texts themselves
            against, ids = (self._tokenizer(message["content"])["input_ids"] for message in chat)
        else:
            text = self._tokenizer.apply_chat_template(
                chat, add_generation_prompt=not prefill, continue_final_message=prefill, tokenize=False
            )
            ids = await self._encode(text)
        max_tokens = int(options.get("max_tokens", self.default_max_tokens))
        if max(len(ids), len(against)) + max_tokens > self.context_tokens:
            raise BadRequest(
                f"{self.name}: a prompt of {plural(len(ids), 'token')} and a reply of up to {max_tokens:,} "
                f"exceed the context window of {self.context_tokens:,}"
            )
        completion: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        call = PendingCall(
            prompt=ids,
            max_tokens=max_tokens,
            temperature=float(options.get("temperature", 1.0)),
            top_p=float(options.get("top_p", 1.0)),
            seed=int(options.get("seed", 0)),
            logprobs=bool(options.get("logprobs", False)),
            schema=request.schema if isinstance(request.schema, type) else None,
            completion=completion,
            against=against,
            decay=float(options.get("contrast_decay", 0.0)),
        )
        self._pending.append(call)
        if self._batching is None or self._batching.done():
            self._batching = asyncio.create_task(self._run_batches())
        try:
            async with asyncio.timeout(self.options.timeout):
                data = await completion
        except TimeoutError:
            raise self.timed_out() from None
        if request.schema is None and not prefill and not debiased:
            message = data["choices"][0]["message"]  # where the template opens the thinking, the reply only closes it
            message["content"] = opened_by_template(text) + message["content"]
        return from_completion(data)

    async def _encode(self, text: str) -> list[int]:
        """Encode texts as token ids. Waiting texts are encoded together in a thread: encoding takes as long as the
        rest of a one-token call."""
        encoded: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        self._texts.append((text, encoded))
        if not self._encodes:
            self._encoding = asyncio.create_task(self._encode_texts())
        return await encoded

    @property
    def _encodes(self) -> bool:
        return self._encoding is not None and not self._encoding.done()

    async def _encode_texts(self) -> None:
        loop = asyncio.get_running_loop()
        while self._texts:
            waiting, self._texts = self._texts, []
            encode = partial(self._tokenizer, [text for text, _ in waiting], add_special_tokens=False)
            try:
                prompts = (await loop.run_in_executor(self._encoder, encode))["input_ids"]
            except Exception as error:
                _fail([future for _, future in waiting], self._error(error))
            else:
                for (_, future), prompt in zip(waiting, prompts, strict=True):
                    if not future.done():
                        future.set_result(prompt)

    async def _run_batches(self) -> None:
        loop = asyncio.get_running_loop()
        while self._pending:
            await self._gather()
            batch = self._next_batch()
            try:
                completions = await loop.run_in_executor(self._pool, self._generate, batch)
            except torch.OutOfMemoryError:
                if len(batch) == 1:
                    batch[0].completion.set_exception(ParleyError(f"{self.name}: out of memory with a single call"))
                self._max_batch = max(1, len(batch) // 2)
                self._pending = [call for call in batch if not call.completion.done()] + self._pending
            except Exception as error:
                _fail([call.completion for call in batch], self._error(error))
            else:
                for call, completion in zip(batch, completions, strict=True):
                    if not call.completion.done():
                        call.completion.set_result(completion)

    async def _gather(self) -> None:
        """Wait until a batch is full or no call is being prepared. Batches then depend on the calls, not on their
        timing: a GPU rounds differently in another batch, and the same run must give the same scores.
        """
        count, busy, end = 0, False, time.monotonic() + MAX_GATHER_SECONDS
        while len(self._pending) < self._max_batch and (self._encodes or busy or count < len(self._pending)):
            count, before = len(self._pending), time.thread_time()
            await asyncio.sleep(GATHER_SECONDS)
            # A loop that never rests may be busy with something other than this model's calls.
            busy = time.thread_time() - before > GATHER_SECONDS / 2 and time.monotonic() < end

    def _error(self, error: Exception) -> ParleyError:
        text = str(error) if isinstance(error, ParleyError) else " ".join(str(error).split())[:200]
        return ParleyError(f"{self.name}: {text}")

    def _next_batch(self) -> list[PendingCall]:
        """The oldest pending call, and as many of its group as fit into its batch: those nearest in length, or the
        oldest if they are read as prefix trees (neighbours have much in common)."""
        self._pending = [call for call in self._pending if not call.completion.done()]  # drops cancelled calls
        if not self._pending:
            return []
        first = self._pending[0]
        as_trees = first.read and self._reads_trees
        group = [call for call in self._pending if call.group == first.group]
        if not as_trees:
            group.sort(key=lambda call: (call is not first, abs(len(call.prompt) - len(first.prompt))))
        batch: list[PendingCall] = []
        longest = 0
        for call in group[: self._max_batch]:
            longest = max(longest, len(call.prompt) + call.max_tokens)
            if batch and not as_trees and longest * (len(batch) + 1) > BATCH_TOKENS:
                break
            batch.append(call)
        chosen = set(map(id, batch))
        self._pending = [call for call in self._pending if id(call) not in chosen]
        return batch

    def _generate(self, batch: Sequence[PendingCall]) -> list[dict[str, Any]]:
        """The completions of a batch; runs in the client's thread."""
        if not batch:
            return []
        device = self._model.device
        pad = self._tokenizer.pad_token_id if self._tokenizer.pad_token_id is not None else min(self._ends)
        schemas = [call.schema for call in batch]
        constraints = ConstrainedBatch(self._grammars, schemas) if any(schemas) else None
        if batch[0].read and self._reads_trees:
            logits = next_token_logits(self._model, [call.prompt for call in batch], BATCH_TOKENS)
            sampler = self._sampler(batch, 0, constraints)
            chosen = sampler(torch.empty((len(batch), 0), device=device), logits).argmax(-1, keepdim=True)
            return self._completions(batch, chosen, sampler)
        prompts = [prompt for call in batch for prompt in (call.prompt, call.against) if prompt]
        rows_each = len(prompts) // len(batch)
        prompt_length = max(map(len, prompts))
        rows = [[pad] * (prompt_length - len(prompt)) + [*prompt] for prompt in prompts]
        mask = [[0] * (prompt_length - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        sampler = self._sampler([call for call in batch for _ in range(rows_each)], prompt_length, constraints)
        processors = [sampler] if rows_each == 1 else [Debiasing(batch[0].decay), sampler]
        with torch.inference_mode():
            generated = self._model.generate(
                input_ids=torch.tensor(rows, device=device),
                attention_mask=torch.tensor(mask, device=device),
                max_new_tokens=batch[0].max_tokens,
                do_sample=False,  # the sampler makes the sampled token the most likely one
                eos_token_id=sorted(self._ends),
                pad_token_id=pad,
                logits_processor=transformers.LogitsProcessorList(processors),
            )
        return self._completions(batch, generated[::rows_each, prompt_length:], sampler)

    def _sampler(
        self, batch: Sequence[PendingCall], prompt_length: int, constraints: ConstrainedBatch | None
    ) -> SeededSampler:
        return SeededSampler(
            seeds=torch.tensor([call.seed % 2**63 for call in batch], device=self._model.device),
            temperatures=torch.tensor([call.temperature for call in batch], device=self._model.device),
            top_p=batch[0].top_p,
            alternatives=(READ_TOKENS if batch[0].read else TOP_TOKENS) if batch[0].logprobs else 0,
            prompt_length=prompt_length,
            constraints=constraints,
        )

    def _completions(self, batch: Sequence[PendingCall], tokens: Any, sampler: SeededSampler) -> list[dict[str, Any]]:
        alternatives = sampler.alternatives()
        return [
            self._completion(call, row_tokens, alternatives[row] if alternatives else None)
            for row, (call, row_tokens) in enumerate(zip(batch, tokens.tolist(), strict=True))
        ]

    def _completion(self, call: PendingCall, tokens: list[int], alternatives: Any) -> dict[str, Any]:
        """A reply in OpenAI's format."""
        end = next((position for position, token in enumerate(tokens) if token in self._ends), None)
        ids = tokens if end is None else tokens[:end]
        content = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        choice: dict[str, Any] = {
            "message": {"content": content},
            "finish_reason": "length" if end is None else "stop",
        }
        if alternatives is not None:
            # A call for one token wants its distribution, even if the model would end here.
            choice["logprobs"] = {
                "content": [
                    {
                        **self._token(token, value),
                        "top_logprobs": [
                            self._token(other, logprob)
                            for rank, (other, logprob) in enumerate(zip(*top, strict=True))
                            if rank < TOP_TOKENS or self._text(other).answers
                        ],
                    }
                    for token, (value, *top) in zip(tokens if call.read else ids, alternatives, strict=False)
                ]
            }
        completion_tokens = len(tokens) if end is None else end + 1
        read = len(call.prompt) + len(call.against)
        usage = {"prompt_tokens": read, "completion_tokens": completion_tokens * (1 + bool(call.against))}
        return {"choices": [choice], "usage": usage}

    def _token(self, token: int, logprob: float) -> dict[str, Any]:
        """A token in OpenAI's format."""
        text, octets, _ = self._text(token)
        return {"token": text, "logprob": logprob, "bytes": octets}

    def _text(self, token: int) -> TokenText:
        if (kept := self._tokens.get(token)) is not None:
            return kept
        text = str(self._tokenizer.decode([token], clean_up_tokenization_spaces=False))
        characters = self._tokenizer.convert_ids_to_tokens(token) or ""
        if not isinstance(self._tokenizer.backend_tokenizer.decoder, ByteLevel):
            octets = list(self._grammars.tokens.decode_bytes([token]))
        elif BYTES.keys() >= set(characters):
            octets = [BYTES[character] for character in characters]
        else:
            octets = list(characters.encode())
        self._tokens[token] = TokenText(text, octets, may_answer(text))
        return self._tokens[token]

    async def close(self) -> None:
        self._model = None
        for pool in (self._pool, self._encoder):
            pool.shutdown(wait=False, cancel_futures=True)


def _fail(futures: Iterable[asyncio.Future[Any]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
