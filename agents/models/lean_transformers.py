"""What is used of transformers, imported without what it loads for compiling, sharding and training.

That is more than half of it. Whoever needs those things in the same process must import them before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch  # noqa: F401  # with the compiler held back it would be another one
from transformers import utils
from transformers.utils import import_utils

COMPILER = "torch._dynamo"
ASKED_FOR = [f"is_{name}_available" for name in ("scipy", "sklearn", "torch_distributed", "torch_flex_attn")]
"""transformers imports these where they are installed."""


class HeldBack(ModuleType):
    """A stand-in for torch's compiler: its decorators return the function as it is."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda function=None, *_, **__: function or (lambda decorated: decorated)


@contextmanager
def held_back() -> Iterator[None]:
    """Import without all of these; afterwards they can be imported."""
    compiler, spec = HeldBack(COMPILER), find_spec(COMPILER)
    compiler.__spec__, compiler.__path__ = spec, list(getattr(spec, "submodule_search_locations", None) or ())
    is_new = sys.modules.setdefault(COMPILER, compiler) is compiler
    answers = [(place, name, getattr(place, name)) for place in (utils, import_utils) for name in ASKED_FOR]
    for place, name, _ in answers:
        setattr(place, name, lambda: False)
    try:
        yield
    finally:
        for place, name, answer in answers:
            setattr(place, name, answer)
        if is_new:
            del sys.modules[COMPILER]


with held_back():
    import transformers.generation.utils  # noqa: F401  # every model imports it
    from transformers import (
        AttentionInterface,
        AutoModelForCausalLM,
        AutoTokenizer,
        DynamicCache,
        GenerationConfig,
        LogitsProcessor,
        LogitsProcessorList,
        TopPLogitsWarper,
    )
    from transformers.cache_utils import DynamicLayer

__all__ = [
    "AttentionInterface",
    "AutoModelForCausalLM",
    "AutoTokenizer",
    "DynamicCache",
    "DynamicLayer",
    "GenerationConfig",
    "LogitsProcessor",
    "LogitsProcessorList",
    "TopPLogitsWarper",
]
