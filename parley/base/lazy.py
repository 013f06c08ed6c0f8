"""Names that a package imports when they are first used, because what they load is heavy: AutoGen takes half a second.

    if TYPE_CHECKING:
        from parley.agents.debate import Cue, Debate
    else:
        __getattr__, __dir__ = import_on_first_use(__name__)

The block for the type checker is the table, so each name is written once, and a wrong one is found by the type checker.
A module of the package itself may be one of them (`from parley import runs`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def import_on_first_use(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose `if TYPE_CHECKING:` block names what is imported when first used.

    Args:
        package: The package's `__name__`. Its `__all__` has the names of both kinds.
    """

    def __getattr__(name: str) -> Any:
        module = _heavy_names(package).get(name)
        if module is None:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return import_module(f"{package}.{name}") if module == package else getattr(import_module(module), name)

    def __dir__() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return __getattr__, __dir__


@cache
def _heavy_names(package: str) -> dict[str, str]:
    """Each name that is imported for type checkers only, with the module it comes from."""
    import ast  # 4 ms that `parley --version` need not spend

    source = Path(str(sys.modules[package].__file__)).read_bytes()
    blocks = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]
    return {
        alias.name: node.module
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
