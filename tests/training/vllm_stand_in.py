"""A stand-in for vLLM, with the classes and attributes that Parley uses, as in vLLM 0.24: one token per step.

It generates greedily with transformers, so that replies can be compared with those of the other engine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import torch
from transformers import AutoModelForCausalLM


class RequestOutputKind(Enum):
    FINAL_ONLY = 2


@dataclass
class StructuredOutputsParams:
    json: Any = None
    disable_any_whitespace: bool = False


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
class EngineArgs:
    model: str
    dtype: str
    max_model_len: int
    gpu_memory_utilization: float
    disable_log_stats: bool


@dataclass
class Running:
    prompt: list[int]
    params: SamplingParams
    tokens: list[int] = field(default_factory=list)
    logprobs: list[dict[int, Any]] = field(default_factory=list)


class LLMEngine:
    """Every engine that was made is in `made`."""

    made: ClassVar[list[LLMEngine]] = []
    seconds_per_step = 0.0

    def __init__(self, args: EngineArgs) -> None:
        self.args, self.requests, self.aborted, self.most_at_once = args, dict[str, Running](), list[str](), 0
        self.model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
        self.open = True
        self.engine_core = SimpleNamespace(shutdown=lambda: setattr(self, "open", False))
        LLMEngine.made.append(self)

    @classmethod
    def from_engine_args(cls, args: EngineArgs) -> LLMEngine:
        return cls(args)

    def add_request(self, request_id: str, prompt: dict[str, list[int]], params: SamplingParams) -> str:
        if params.max_tokens == 13:
            raise ValueError("13 tokens are refused")
        self.requests[request_id] = Running(prompt["prompt_token_ids"], params)
        self.most_at_once = max(self.most_at_once, len(self.requests))
        return request_id

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
            logs = torch.log_softmax(logits.float(), dim=-1)
            token = int(logs.argmax())
            top = logs.topk(run.params.logprobs or 1)
            run.tokens.append(token)
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
    LLMEngine.made = []
    return stand_in
