"""Decoding steps recorded once and replayed. A small model on a GPU spends its time in Python, launching one kernel
after another; a CUDA graph launches them all at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch
import transformers
from transformers.cache_utils import StaticLayer

from parley.agents.errors import ParleyError

RECORDING = threading.Lock()
PLAIN = (bool, int, float, str, type(None))
"""What a step is given beside tensors and the cache."""
LOOKS_AT_LENGTHS = {"dynamic", "longrope"}
"""Positions whose code asks the GPU how long the text is, which a recording cannot."""


@contextmanager
def cuda_graph_decoding(model: Any, length: int, *, wanted: bool = True) -> Iterator[dict[str, Any]]:
    """What `generate` is to be given so that its steps are replayed: nothing where they cannot or should not be."""
    within = model.get_base_model() if hasattr(model, "get_base_model") else model  # adapters generate by their base
    if not wanted or not can_record(within):
        yield {}
        return
    cache = fixed_cache(within, length)
    # `generate` asks for a compiled model where the cache has a fixed size: it gets this in place of one.
    within.get_compiled_call = lambda _: Replayed(within)
    try:
        yield {"past_key_values": cache}
    finally:
        del within.get_compiled_call  # else the model would hold itself, and its memory, when nobody else does


def can_record(model: Any) -> bool:
    """Whether a model's steps differ by nothing but the tensors they get, on a device that records."""
    rope = getattr(model.config, "rope_parameters", None) or {}
    if model.device.type != "cuda" or not getattr(model, "_can_compile_fullgraph", False):
        return False
    layers = transformers.StaticCache(config=model.config, max_cache_len=1).layers
    # Sliding windows count their tokens in Python, which no recording sees.
    return rope.get("rope_type") not in LOOKS_AT_LENGTHS and all(type(one) is StaticLayer for one in layers)


def fixed_cache(model: Any, length: int) -> Any:
    cache = transformers.StaticCache(config=model.config, max_cache_len=length)
    cache.layers = [OfOneType(length) for _ in cache.layers]
    return cache


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
        shape = shapes(inputs)
        if self.shape is None:
            self.shape = shape
            return self.first(inputs)
        if shape != self.shape:
            return self.model(**inputs)
        if self.again is None:
            kept = copied(inputs)
            self.kept = tensors(kept)
            self.again = self.record(kept)
        else:
            for name, value in tensors(inputs).items():
                self.kept[name].copy_(value)
        return self.again()

    def first(self, inputs: dict[str, Any]) -> Any:
        """On the stream that records: what libraries set up at a first call must not be recorded."""
        where = self.model.device
        stream, outside = aside(where, threading.get_ident()), torch.cuda.current_stream(where)
        stream.wait_stream(outside)
        with torch.cuda.stream(stream):
            said = self.model(**inputs)
        outside.wait_stream(stream)
        return said

    def record(self, inputs: dict[str, Any]) -> Callable[[], Any]:
        where = self.model.device
        graph, outside = torch.cuda.CUDAGraph(), torch.cuda.current_stream(where)
        try:
            with (
                RECORDING,
                torch.cuda.device(where),
                torch.cuda.graph(graph, stream=aside(where, threading.get_ident()), capture_error_mode="thread_local"),
            ):
                said = self.model(**inputs)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            torch.cuda.set_stream(outside)
            why = " ".join(str(error).split())[:120]
            raise ParleyError(
                f"a step of {type(self.model).__name__} cannot be recorded ({why}): turn that off with replay = false"
            ) from None

        def again() -> Any:
            graph.replay()
            return said

        return again


@lru_cache(maxsize=256)
def aside(device: Any, thread: int) -> Any:
    """A stream to record on, one a device and thread: libraries keep memory for every stream they have seen."""
    return torch.cuda.Stream(device)


def known(inputs: Mapping[str, Any]) -> bool:
    """Whether a step gets nothing but tensors, plain values and a cache."""
    return all(
        known(value)
        if isinstance(value, dict)
        else torch.is_tensor(value) or isinstance(value, (*PLAIN, transformers.Cache))
        for value in inputs.values()
    )


def tensors(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """All tensors that go into a step, by name. Some models have a mask for each kind of layer, in a dict."""
    found: dict[str, Any] = {}
    for name, value in inputs.items():
        if torch.is_tensor(value):
            found[name] = value
        elif isinstance(value, dict):
            found |= {f"{name}.{inner}": one for inner, one in tensors(value).items()}
    return found


def shapes(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same at every step that is replayed: shapes of tensors, and plain values."""
    plain = {name: value for name, value in inputs.items() if isinstance(value, PLAIN)}
    return plain | {name: (value.shape, value.dtype) for name, value in tensors(inputs).items()}


def copied(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.clone() if torch.is_tensor(value) else copied(value) if isinstance(value, dict) else value
        for name, value in inputs.items()
    }
