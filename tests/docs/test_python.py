"""Every Python block of README and docs runs, on a simulated model; every TOML block can be parsed."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.agents.providers import PROVIDERS
from tests.docs.test_commands import blocks

CHANGED = {
    r'"(?:openai|ollama|anthropic|google)/[^"]+"': '"sim/any"',  # a key or a server
    r"rounds=1, options": 'rounds=1, model="sim/any", options',  # the README's debate, which uses the default model
    # bases that all agree have a wide interval, for those that a sample may have missed
    r'model="sim/any",\n    suite="wide"': 'model="sim/judge?varies=0.1",\n    suite="wide"',
    r'suite="wide",': 'suite="wide", limit=16,',  # a quarter of the bases
    r'Path\("articles"\)\.mkdir\(\)': "",  # the folder already exists
    r"    max_iterations=2,\n\)": '    max_iterations=2,\n    model="sim/any",\n)',
}
"""Replacements in a block before it is run."""
UNCHANGED = "AssistantAgent("
"""AutoGen requires a model with tools, which a simulated one is not; the block makes a client and sends nothing."""
ONLY_COMPILED = {
    "# clients.py": "a module of its own: tests/agents/test_autogen_clients.py",
    "from trl import": "needs torch: tests/training/test_trl.py",
    "# example: ": "run on models with the effect in question: test_examples",
}
"""Blocks with these words are only compiled."""


def predefined_names() -> dict[str, Any]:
    """Names that blocks use because the text before them introduces them."""
    from autogen_core.models import ModelFamily, ModelInfo
    from autogen_ext.models.replay import ReplayChatCompletionClient
    from pydantic import BaseModel

    from parley.agents import Assessment, Persona

    def my_scorer(task: str, draft: str) -> Assessment:
        return Assessment(score=3.0, reason="plain")

    def search(query: str) -> str:
        """Look something up."""
        return query

    info = ModelInfo(
        vision=False, function_calling=True, json_output=False, structured_output=False, family=ModelFamily.UNKNOWN
    )
    return {
        "my_scorer": my_scorer,
        "search": search,
        "BaseModel": BaseModel,
        "client": ReplayChatCompletionClient(["Ada agrees."] * 50, model_info=info),
        "ada": Persona("Ada", "You are Ada, an auditor."),
        "ben": Persona("Ben", "You are Ben, a baker."),
    }


def run(code: str, name: str) -> None:
    compiled = compile(code, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    namespace = {"__name__": "a_block_of_the_docs", **predefined_names()}
    if compiled.co_flags & inspect.CO_COROUTINE:

        async def run_block() -> None:
            await eval(compiled, namespace)

        asyncio.run(run_block())
    else:
        exec(compiled, namespace)


def test_the_python_of_a_page_runs(
    page: Path, desk: Callable[[], Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setitem(PROVIDERS, "acme", PROVIDERS["sim"])  # a block registers its own, which is then gone again
    for code in blocks(page.read_text("utf-8"), "python"):
        desk()
        for old, new in CHANGED.items() if UNCHANGED not in code else ():
            code = re.sub(old, new, code)
        if any(words in code for words in ONLY_COMPILED):
            compile(code, page.name, "exec")
        else:
            run(code, page.name)


def test_the_toml_of_a_page_can_be_parsed(page: Path) -> None:
    for text in blocks(page.read_text("utf-8"), "toml"):
        assert tomllib.loads(text)
