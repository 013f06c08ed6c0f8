"""Imports on first use, for names that load heavy packages: AutoGen takes half a second.

if TYPE_CHECKING:
    from parley.agents.debate import Cue, Debate
else:
    __getattr__, __dir__ = import_on_first_use(__name__, {"parley.agents.debate": ("Cue", "Debate")})
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def import_on_first_use(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    Args:
        package: The package's `__name__`. Its `__all__` has all its names.
        modules: The names to import on first use, by module; submodules are under the package itself.
    """
    places = {name: module for module, names in modules.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        if places[name] == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(places[name]), name)

    def __dir__() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return __getattr__, __dir__
