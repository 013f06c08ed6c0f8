"""The reference, made from signatures and docstrings: a page a room, its modules one after the other."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from pydantic import BaseModel

OBJECT = re.compile(r"<[^<>]*(?:<[^<>]*>[^<>]*)*>")
"""A default that has no name."""


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


def word(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def fields(thing: type[BaseModel]) -> list[str]:
    """A config's or a reply's, as they stand in its class: what pydantic makes of them is for machines."""
    told = {name: words for base in reversed(thing.__mro__) for name, words in inspect.get_annotations(base).items()}
    return [
        f"{name}: {word(told[name])}" + ("" if info.is_required() else f" = {info.default!r}")
        for name, info in thing.model_fields.items()
    ]


def parameters(thing: Any) -> list[str]:
    found: list[str] = []
    for one in inspect.signature(thing).parameters.values():
        if one.kind is one.KEYWORD_ONLY and not any(word.startswith("*") for word in found):
            found.append("*")
        kind = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        about = "" if one.annotation is one.empty else f": {word(one.annotation)}"
        default = "" if one.default is one.empty else f" = {OBJECT.sub('…', repr(one.default))}"
        found.append(f"{kind}{one.name}{about}{default}")
    return found


def signature(name: str, thing: Any) -> str:
    """As one would write it: annotations without quotes, one parameter a line where they are many."""
    if isinstance(thing, type) and issubclass(thing, BaseModel):
        inside, back = fields(thing), ""
    else:
        try:
            inside, returned = parameters(thing), inspect.signature(thing).return_annotation
        except (TypeError, ValueError):
            return name
        plain = returned is inspect.Signature.empty or isinstance(thing, type)
        back = "" if plain else f" -> {word(returned)}"
    line = f"{name}({', '.join(inside)}){back}"
    return line if len(line) <= 90 else f"{name}(\n    " + ",\n    ".join(inside) + f",\n){back}"


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
            f"- `{inner}({', '.join(parameters(method)[1:])})`: {' '.join(said(method).split())}"
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
