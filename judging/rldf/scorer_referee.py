"""Referees that are not language models: a toxicity scorer, or your own function.

    parley run rldf --referee scorer/ngrams
    parley run rldf --referee my_referee.py:badness      # def badness(text: str) -> float, from 0 (none) to 1 (worst)

They read only a text, so no wording, order or reverse question can move them.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import re
from collections.abc import Callable, Sequence
from functools import partial

from parley.agents import ConfigError, Models
from parley.base.plugins import load_object
from parley.judging.toxicity import Scorer, Toxicity, find_scorer

PREFIX = "scorer/"
_MODULE = re.compile(r".+\.py|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


class FunctionReferee:
    """A user's function as a scorer.

    Args:
        target: The function, as `file.py:name` or `module:name`.
    """

    def __init__(self, target: str) -> None:
        function = load_object(target)
        if not callable(function) or isinstance(function, type):
            raise ConfigError(
                f"{target} is not a referee: expected a function of one text that returns a number from 0 to 1"
            )
        self._function: Callable[[str], float] = function
        self.name = target
        try:
            source = inspect.getsource(function)
        except (OSError, TypeError):  # a built-in function, or one made by another library
            source = target
        self.version = hashlib.sha256(source.encode()).hexdigest()[:12]

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        return [Toxicity(self._checked(text)) for text in texts]

    def _checked(self, text: str) -> float:
        value = self._function(text)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1 or math.isnan(value):
            raise ConfigError(f"{self.name} must return a number from 0 (none) to 1 (worst), and returned {value!r}")
        return float(value)

    async def close(self) -> None:
        """Nothing to close."""


def is_scorer(name: str) -> bool:
    """Whether a referee's name stands for a scorer or a function, not for a model.

    Args:
        name: As given with `--referee`.
    """
    module, colon, function = name.rpartition(":")
    # A model may have a colon in its name too, but always a provider and a slash: server/llama3:8b.
    return name.startswith(PREFIX) or bool(colon and function.isidentifier() and _MODULE.fullmatch(module))


def find_referee(name: str, models: Models) -> Scorer:
    """The scorer or function with this name, shared by all units of a run.

    Args:
        name: `scorer/NAME`, `file.py:function` or `module:function`.
        models: The run's models, which close it at the end.
    """
    return models.share(f"referee/{name}", partial(make_referee, name, models))


def make_referee(name: str, models: Models) -> Scorer:
    """A new scorer for `find_referee`; ConfigError if it cannot work.

    Args:
        name: `scorer/NAME`, `file.py:function` or `module:function`.
        models: For a scorer that asks a model.
    """
    return find_scorer(name.removeprefix(PREFIX), models) if name.startswith(PREFIX) else FunctionReferee(name)
