"""The reference, made from signatures and docstrings: one page per package, with its modules in order."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from pydantic import BaseModel

OBJECT = re.compile(r"<[^<>]*(?:<[^<>]*>[^<>]*)*>")
"""The repr of an object without a name, such as `<object object at 0x7f…>`."""
SECTIONS = {"Args": "Arguments", "Attributes": "Attributes"}
"""Sections of a docstring that are lists of `name: description`, and their titles on the page."""
MAX_DEFAULT_CHARS = 60
"""A longer default is shown as `...`."""


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The public names of a module: its `__all__`, or the functions and classes that it defines itself."""
    for name in getattr(module, "__all__", None) or sorted(vars(module)):
        thing = getattr(module, name)
        own = getattr(thing, "__module__", None) == module.__name__
        offered = hasattr(module, "__all__") or (own and not name.startswith("_"))
        if offered and (isinstance(thing, type) or inspect.isroutine(thing)):
            yield name, thing


def docstring(thing: Any) -> str:
    """The thing's own docstring, without those that dataclasses generate and classes inherit."""
    text = thing.__doc__ or ""
    if isinstance(thing, type) and (text.startswith(f"{thing.__name__}(") or "__doc__" not in vars(thing)):
        return ""
    return inspect.cleandoc(text)


def type_name(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def default_text(value: Any) -> str:
    named = isinstance(value, type) or inspect.isroutine(value)
    text = OBJECT.sub("...", value.__name__ if named else repr(value))
    return text if len(text) <= MAX_DEFAULT_CHARS and "PydanticUndefined" not in text else "..."


def fields(thing: type[BaseModel]) -> list[str]:
    """The fields of a pydantic model as its class declares them: pydantic's own signature is hard to read."""
    types = {name: hint for base in reversed(thing.__mro__) for name, hint in inspect.get_annotations(base).items()}
    return [
        f"{name}: {type_name(types[name])}" + ("" if info.is_required() else f" = {default_text(info.default)}")
        for name, info in thing.model_fields.items()
    ]


def parameters(thing: Any) -> list[str]:
    lines: list[str] = []
    for item in inspect.signature(thing).parameters.values():
        if item.kind is item.KEYWORD_ONLY and not any(line.startswith("*") for line in lines):
            lines.append("*")
        stars = "*" if item.kind is item.VAR_POSITIONAL else "**" if item.kind is item.VAR_KEYWORD else ""
        hint = "" if item.annotation is item.empty else f": {type_name(item.annotation)}"
        default = "" if item.default is item.empty else f" = {default_text(item.default)}"
        lines.append(f"{stars}{item.name}{hint}{default}")
    return lines


def signature(name: str, thing: Any) -> str:
    """The signature as one would write it: annotations without quotes, one parameter per line if there are many."""
    if isinstance(thing, type) and issubclass(thing, BaseModel):
        inside, result = fields(thing), ""
    else:
        try:
            inside, returned = parameters(thing), inspect.signature(thing).return_annotation
        except (TypeError, ValueError):
            return name
        no_result = returned is inspect.Signature.empty or isinstance(thing, type)
        result = "" if no_result else f" -> {type_name(returned)}"
    line = f"{name}({', '.join(inside)}){result}"
    return line if len(line) <= 90 else f"{name}(\n    " + ",\n    ".join(inside) + f",\n){result}"


def methods(thing: type) -> Iterator[tuple[str, Any]]:
    for name, method in vars(thing).items():
        if isinstance(method, classmethod | staticmethod):
            method = method.__func__
        if not name.startswith("_") and inspect.isfunction(method) and method.__doc__:
            yield name, method


def as_markdown(text: str) -> str:
    """A docstring as Markdown: the entries of its `Args:` section (name: description) become a list."""
    parts: list[str] = []
    for title, section in split_sections(text):
        if title:
            entries = re.split(r"\n(?=\S)", inspect.cleandoc(section))
            items = (entry.partition(":") for entry in entries if entry.strip())
            listed = "\n".join(f"- `{name}`: {' '.join(about.split())}" for name, _, about in items)
            parts.append(f"**{SECTIONS[title]}**\n\n{listed}")
        else:
            parts.append(section)
    return "\n\n".join(part for part in parts if part.strip())


def split_sections(text: str) -> Iterator[tuple[str, str]]:
    """The parts of a Google-style docstring: ("", text), or ("Args", its indented lines)."""
    start = 0
    for match in re.finditer(rf"^({'|'.join(SECTIONS)}):\n((?:[ ]+.*\n?|\n)+)", text, re.M):
        yield "", text[start : match.start()].rstrip()
        yield match[1], match[2].rstrip()
        start = match.end()
    yield "", text[start:].strip()


def entry(name: str, thing: Any) -> str:
    parts = [f"### {name}", f"```python\n{signature(name, thing)}\n```", as_markdown(docstring(thing))]
    if isinstance(thing, type):
        parts += [method_item(inner, method) for inner, method in methods(thing)]
    return "\n\n".join(part for part in parts if part)


def method_item(name: str, method: Any) -> str:
    """A method as an item of a list, its text indented so that it belongs to the item."""
    text = f"`{name}({', '.join(parameters(method)[1:])})`: {as_markdown(docstring(method))}"
    return "- " + textwrap.indent(text, "  ").lstrip()


def reference_page(package: str, names: list[str]) -> str:
    parts = [f"# {package}", f"What `parley.{package}` offers to your own code, from its docstrings."]
    for name in names:
        module = importlib.import_module(name)
        parts.append(f"## {name}\n\n{as_markdown(inspect.cleandoc(module.__doc__ or ''))}")
        parts += [entry(inner, thing) for inner, thing in public(module)]
    return "\n\n".join(parts)


def undocumented(names: list[str]) -> list[str]:
    """Modules, classes and functions without a docstring."""
    missing = []
    for name in names:
        module = importlib.import_module(name)
        missing += [] if module.__doc__ else [name]
        missing += [f"{name}.{inner}" for inner, thing in public(module) if not docstring(thing)]
    return missing
