"""A stand-in for vLLM, with the classes and attributes that Parley uses, as in vLLM 0.24: one token per step.

It generates greedily with transformers, so that replies can be compared with those of the other engine.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import llguidance
import llguidance.hf
import llguidance.torch
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


class RequestOutputKind(Enum):
    FINAL_ONLY = 2


@dataclass
class StructuredOutputsParams:
    json: Any = None


@dataclass
class SamplingParams:
    max_tokens: int
    temperature: float
    top_p: float
    seed: int
    logprobs: int | None
    stop_token_ids: list[int]
    structured_outputs: StructuredOutputsParams | None
    detokenize: bool
    output_kind: RequestOutputKind


@dataclass
class StructuredOutputsConfig:
    backend: str = "auto"


@dataclass
class EngineArgs:
    model: str
    dtype: str
    max_model_len: int
    gpu_memory_utilization: float
    disable_log_stats: bool
    structured_outputs_config: StructuredOutputsConfig = field(default_factory=StructuredOutputsConfig)


@dataclass
class Running:
    prompt: list[int]
    params: SamplingParams
    tokens: list[int] = field(default_factory=list)
    logprobs: list[dict[int, Any]] = field(default_factory=list)
    matcher: Any = None


class LLMEngine:
    """Every engine that was made is in `made`."""

    made: ClassVar[list[LLMEngine]] = []
    seconds_per_step = 0.0

    def __init__(self, args: EngineArgs) -> None:
        self.args, self.requests, self.aborted, self.most_at_once = args, dict[str, Running](), list[str](), 0
        self.model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
        tokenizer = AutoTokenizer.from_pretrained(args.model)
        self.vocabulary = llguidance.hf.from_tokenizer(tokenizer, n_vocab=self.model.config.vocab_size)
        self.open = True
        self.engine_core = SimpleNamespace(shutdown=lambda: setattr(self, "open", False))
        LLMEngine.made.append(self)

    @classmethod
    def from_engine_args(cls, args: EngineArgs) -> LLMEngine:
        return cls(args)

    def add_request(self, request_id: str, prompt: dict[str, list[int]], params: SamplingParams) -> str:
        if params.max_tokens == 13:
            raise ValueError("13 tokens are refused")
        self.requests[request_id] = Running(prompt["prompt_token_ids"], params, matcher=self.matcher(params))
        self.most_at_once = max(self.most_at_once, len(self.requests))
        return request_id

    def matcher(self, params: SamplingParams) -> Any:
        """As its backend `guidance` makes them."""
        if params.structured_outputs is None or self.args.structured_outputs_config.backend != "guidance":
            return None
        schema = json.dumps(params.structured_outputs.json)
        grammar = llguidance.LLMatcher.grammar_from_json_schema(schema, defaults={"whitespace_flexible": True})
        return llguidance.LLMatcher(self.vocabulary, grammar)

    def abort_request(self, request_ids: list[str]) -> None:
        self.aborted += request_ids
        for name in request_ids:
            del self.requests[name]

    def step(self) -> list[Any]:
        time.sleep(self.seconds_per_step)
        finished = []
        for name, run in list(self.requests.items()):
            with torch.inference_mode():
                logits = self.model(torch.tensor([run.prompt + run.tokens])).logits[0, -1]
            if run.matcher is not None:
                allowed = llguidance.torch.allocate_token_bitmask(1, len(logits))
                llguidance.torch.fill_next_token_bitmask(run.matcher, allowed)
                llguidance.torch.apply_token_bitmask_inplace(logits[None], allowed)
            logs = torch.log_softmax(logits.float(), dim=-1)
            token = int(logs.argmax())
            top = logs.topk(run.params.logprobs or 1)
            run.tokens.append(token)
            if run.matcher is not None:
                run.matcher.consume_token(token)
            run.logprobs.append(
                {
                    int(other): SimpleNamespace(logprob=float(logprob))
                    for other, logprob in zip(top.indices, top.values, strict=True)
                }
            )
            if token in run.params.stop_token_ids or len(run.tokens) == run.params.max_tokens:
                del self.requests[name]
                reply = SimpleNamespace(token_ids=run.tokens, logprobs=run.logprobs if run.params.logprobs else None)
                finished.append(SimpleNamespace(request_id=name, finished=True, outputs=[reply]))
        return finished


def module() -> ModuleType:
    stand_in: Any = ModuleType("vllm")
    stand_in.EngineArgs, stand_in.LLMEngine, stand_in.SamplingParams = EngineArgs, LLMEngine, SamplingParams
    stand_in.sampling_params = SimpleNamespace(
        RequestOutputKind=RequestOutputKind, StructuredOutputsParams=StructuredOutputsParams
    )
    stand_in.config = SimpleNamespace(StructuredOutputsConfig=StructuredOutputsConfig)
    LLMEngine.made = []
    return stand_in
