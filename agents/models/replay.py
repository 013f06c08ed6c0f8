"""Decoding steps recorded once and replayed. A small model on a GPU spends its time in Python, launching one kernel
after another; a CUDA graph launches them all at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers
from transformers.cache_utils import StaticLayer

RECORDING = threading.Lock()
PLAIN = (bool, int, float, str, type(None), transformers.Cache)
"""What a step is given beside tensors, and is the same at every step."""


def replayed(model: Any, length: int) -> dict[str, Any]:
    """What `generate` is to be given so that its steps are replayed: nothing where they cannot be."""
    if model.device.type != "cuda" or not getattr(model, "_can_compile_fullgraph", False):
        return {}
    cache = transformers.StaticCache(config=model.config, max_cache_len=length)
    if any(type(layer) is not StaticLayer for layer in cache.layers):
        return {}  # sliding windows count their tokens in Python, which no recording sees
    cache.layers = [OfOneType(length) for _ in cache.layers]
    # `generate` asks for a compiled model where the cache has a fixed size: it gets this in place of one.
    model.get_compiled_call = lambda _: Replayed(model)
    return {"past_key_values": cache}


class OfOneType(StaticLayer):  # type: ignore[misc]
    """Mixed precision makes keys of 32 bits and values of 16, which one cache does not hold."""

    def update(self, key_states: Any, value_states: Any, *more: Any, **named: Any) -> Any:
        return super().update(key_states, value_states.to(key_states.dtype), *more, **named)


class Replayed:
    """Stands in for a model through one `generate`: the first step is taken as it is, the second recorded, which moves
    nothing, and replayed, as are all that follow. A step with inputs of another shape or kind is taken as it is."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.shape: dict[str, Any] | None = None
        self.again: Callable[[], Any] | None = None

    def __call__(self, **inputs: Any) -> Any:
        if not known(inputs):
            return self.model(**inputs)
        tensors = parts(inputs)
        shape = {name: (value.shape, value.dtype) for name, value in tensors.items()}
        if self.shape is None:
            self.shape = shape
            return self.first(inputs)
        if shape != self.shape:
            return self.model(**inputs)
        if self.again is None:
            kept = copied(inputs)
            self.kept = parts(kept)
            self.again = self.record(kept)
        else:
            for name, value in tensors.items():
                self.kept[name].copy_(value)
        return self.again()

    def first(self, inputs: dict[str, Any]) -> Any:
        """On the stream that records: what libraries set up at a first call must not be recorded."""
        self.stream = torch.cuda.Stream(self.model.device)
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            said = self.model(**inputs)
        torch.cuda.current_stream().wait_stream(self.stream)
        return said

    def record(self, inputs: dict[str, Any]) -> Callable[[], Any]:
        graph = torch.cuda.CUDAGraph()
        with RECORDING, torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
            said = self.model(**inputs)

        def again() -> Any:
            graph.replay()
            return said

        return again


def known(inputs: Mapping[str, Any]) -> bool:
    """Whether a step gets nothing but tensors, and what is the same at every step."""
    return all(
        known(value) if isinstance(value, dict) else torch.is_tensor(value) or isinstance(value, PLAIN)
        for value in inputs.values()
    )


def parts(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """All tensors that go into a step, by name. Some models have a mask for each kind of layer, in a dict."""
    found: dict[str, Any] = {}
    for name, value in inputs.items():
        if torch.is_tensor(value):
            found[name] = value
        elif isinstance(value, dict):
            found |= {f"{name}.{inner}": one for inner, one in parts(value).items()}
    return found


def copied(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.clone() if torch.is_tensor(value) else copied(value) if isinstance(value, dict) else value
        for name, value in inputs.items()
    }
