"""Prompts as text files, one a prompt; `load("malibu/single")` reads one. Placeholders stand in {braces}."""

from __future__ import annotations

from importlib.resources import files

from judging.study import Prompt


def load(name: str) -> Prompt:
    path = files("judging").joinpath("prompts", *f"{name}.txt".split("/"))
    return Prompt(name, path.read_text("utf-8").strip())
