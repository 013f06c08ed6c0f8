"""The reference, made from signatures and docstrings: a page a room, its modules one after the other."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """What a module offers: its `__all__`, or the functions and classes that it defines itself."""
    for name in getattr(module, "__all__", None) or sorted(vars(module)):
        thing = getattr(module, name)
        own = getattr(thing, "__module__", None) == module.__name__
        offered = hasattr(module, "__all__") or (own and not name.startswith("_"))
        if offered and (isinstance(thing, type) or inspect.isroutine(thing)):
            yield name, thing


def said(thing: Any) -> str:
    """A docstring of its own; what dataclasses and inheritance put in its place does not count."""
    text = thing.__doc__ or ""
    if isinstance(thing, type) and (text.startswith(f"{thing.__name__}(") or "__doc__" not in vars(thing)):
        return ""
    return inspect.cleandoc(text)


def signature(name: str, thing: Any) -> str:
    try:
        shape = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return name
    shape = re.sub(r"<factory>|<[\w.]+ object at 0x[0-9a-f]+>|<class '([\w.]+)'>", r"\1", shape)
    if len(name + shape) <= 100:
        return name + shape
    inside = inspect.signature(thing)
    lines = ",\n    ".join(str(one).replace("'", "") for one in inside.parameters.values())
    back = "" if inside.return_annotation is inside.empty else f" -> {inside.return_annotation}"
    return f"{name}(\n    {lines},\n){back}"


def methods(thing: type) -> Iterator[tuple[str, Any]]:
    for name, method in vars(thing).items():
        if isinstance(method, classmethod | staticmethod):
            method = method.__func__
        if not name.startswith("_") and inspect.isfunction(method) and method.__doc__:
            yield name, method


def entry(name: str, thing: Any) -> str:
    lines = [f"### {name}", f"```python\n{signature(name, thing)}\n```", said(thing)]
    if isinstance(thing, type):
        lines += [
            f"- `{inner}{inspect.signature(method)}`: {' '.join(said(method).split())}"
            for inner, method in methods(thing)
        ]
    return "\n\n".join(line for line in lines if line)


def reference_page(room: str, names: list[str]) -> str:
    parts = [f"# {room}"]
    for name in names:
        module = importlib.import_module(name)
        parts.append(f"## {name}\n\n{inspect.cleandoc(module.__doc__ or '')}")
        parts += [entry(inner, thing) for inner, thing in public(module)]
    return "\n\n".join(parts)


def undocumented(names: list[str]) -> list[str]:
    """Public things without a word about them."""
    found = []
    for name in names:
        module = importlib.import_module(name)
        found += [] if module.__doc__ else [name]
        found += [f"{name}.{inner}" for inner, thing in public(module) if not said(thing)]
    return found
