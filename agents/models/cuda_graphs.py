"""Decoding with CUDA graphs. A small model on a GPU spends most of its time in Python, launching one kernel after
another; a CUDA graph captures the kernels of one decoding step and launches them all in one call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch
import transformers
from transformers.cache_utils import StaticLayer

from parley.base.errors import ParleyError

CAPTURE_LOCK = threading.Lock()
"""Only one thread may capture a graph at a time."""
PLAIN_TYPES = (bool, int, float, str, type(None))
"""What a decoding step may be given beside tensors and the cache."""
LENGTH_DEPENDENT_ROPE = {"dynamic", "longrope"}
"""Position embeddings that read the text's length back from the GPU, which cannot be captured."""


@contextmanager
def cuda_graph_decoding(model: Any, length: int, *, enabled: bool = True) -> Iterator[dict[str, Any]]:
    """Inside, `model.generate(**kwargs)` decodes with a CUDA graph, if `kwargs` includes what this yields.

    Yields nothing, and changes nothing, if the model or the device does not allow it.

    Args:
        model: a transformers model, perhaps with adapters.
        length: maximum tokens of prompt and reply together.
        enabled: False turns it off.
    """
    base = model.get_base_model() if hasattr(model, "get_base_model") else model  # adapters generate with their base
    if not enabled or not can_capture(base):
        yield {}
        return
    cache = static_cache(base, length)
    # With a static cache `generate` requests a compiled model; it gets the CUDA graph in its place.
    base.get_compiled_call = lambda _: CudaGraphModel(base)
    try:
        yield {"past_key_values": cache}
    finally:
        del base.get_compiled_call  # else the model would refer to itself, and its memory would never be freed


def can_capture(model: Any) -> bool:
    """Whether a model's decoding steps differ only in the tensors they are given, and its device has CUDA graphs."""
    rope = getattr(model.config, "rope_parameters", None) or {}
    if model.device.type != "cuda" or not getattr(model, "_can_compile_fullgraph", False):
        return False
    layers = transformers.StaticCache(config=model.config, max_cache_len=1).layers
    # Sliding windows count their tokens in Python, which is not captured.
    return rope.get("rope_type") not in LENGTH_DEPENDENT_ROPE and all(type(layer) is StaticLayer for layer in layers)


def static_cache(model: Any, length: int) -> Any:
    """A key-value cache of fixed size, as CUDA graphs need."""
    cache = transformers.StaticCache(config=model.config, max_cache_len=length)
    cache.layers = [SingleDtypeLayer(length) for _ in cache.layers]
    return cache


class SingleDtypeLayer(StaticLayer):  # type: ignore[misc]
    """Mixed precision gives keys of 32 bits and values of 16, but a static layer has one type: the keys'."""

    def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> Any:
        return super().update(key_states, value_states.to(key_states.dtype), *args, **kwargs)


class CudaGraphModel:
    """Takes a model's place during one `generate`. The first decoding step runs normally, as a warm-up; the second is
    captured, and it and all later steps are replayed. A step whose inputs have another shape or type runs normally."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.signature: dict[str, Any] | None = None
        self.replay: Callable[[], Any] | None = None

    def __call__(self, **inputs: Any) -> Any:
        if not capturable(inputs):
            return self.model(**inputs)
        signature = input_signature(inputs)
        if self.signature is None:
            self.signature = signature
            return self.warm_up(inputs)
        if signature != self.signature:
            return self.model(**inputs)
        if self.replay is None:
            static_inputs = cloned(inputs)
            self.static_tensors = tensors(static_inputs)
            self.replay = self.capture(static_inputs)
        else:
            for name, value in tensors(inputs).items():
                self.static_tensors[name].copy_(value)
        return self.replay()

    def warm_up(self, inputs: dict[str, Any]) -> Any:
        """On the capture stream, so that what libraries initialize at the first call is not captured."""
        device = self.model.device
        stream, current = capture_stream(device, threading.get_ident()), torch.cuda.current_stream(device)
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            output = self.model(**inputs)
        current.wait_stream(stream)
        return output

    def capture(self, inputs: dict[str, Any]) -> Callable[[], Any]:
        """Capture a step with these inputs, without running it; returns what replays it."""
        device = self.model.device
        graph, current = torch.cuda.CUDAGraph(), torch.cuda.current_stream(device)
        stream = capture_stream(device, threading.get_ident())
        try:
            with (
                CAPTURE_LOCK,
                torch.cuda.device(device),
                torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"),
            ):
                output = self.model(**inputs)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            torch.cuda.set_stream(current)
            reason = " ".join(str(error).split())[:120]
            raise ParleyError(
                f"a CUDA graph of {type(self.model).__name__} cannot be captured ({reason}): set replay = false"
            ) from None

        def replay() -> Any:
            graph.replay()
            return output

        return replay


@lru_cache(maxsize=256)
def capture_stream(device: Any, thread: int) -> Any:
    """The stream to capture on: one per device and thread, since libraries allocate memory for each stream."""
    return torch.cuda.Stream(device)


def capturable(inputs: Mapping[str, Any]) -> bool:
    """Whether a step is given nothing but tensors, plain values and a cache."""
    return all(
        capturable(value)
        if isinstance(value, dict)
        else torch.is_tensor(value) or isinstance(value, (*PLAIN_TYPES, transformers.Cache))
        for value in inputs.values()
    )


def tensors(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """All tensors among a step's inputs, by name. Some models have a dict with one mask per type of layer."""
    flat: dict[str, Any] = {}
    for name, value in inputs.items():
        if torch.is_tensor(value):
            flat[name] = value
        elif isinstance(value, dict):
            flat |= {f"{name}.{key}": tensor for key, tensor in tensors(value).items()}
    return flat


def input_signature(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What must be equal in every replayed step: plain values, and the tensors' shapes and types."""
    plain = {name: value for name, value in inputs.items() if isinstance(value, PLAIN_TYPES)}
    return plain | {name: (value.shape, value.dtype) for name, value in tensors(inputs).items()}


def cloned(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs with copies of all tensors."""
    return {
        name: value.clone() if torch.is_tensor(value) else cloned(value) if isinstance(value, dict) else value
        for name, value in inputs.items()
    }
