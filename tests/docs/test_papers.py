"""The papers point by point: what the pages name exists, and nothing of a paper's prompts is left out."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from pydantic import ValidationError

from docs.point_by_point import PAPERS, Item, load_models, load_paper, load_prompts
from parley.agents import ConfigError
from parley.agents.providers import provider_of
from parley.cli import parse


@cache
def code_of_reports(root: Path) -> str:
    paths = (path for folder in ("analysis", "judging", "training") for path in (root / folder).rglob("*.py"))
    return "\n".join(path.read_text("utf-8") for path in paths)


def problem(place: str, root: Path) -> str:
    """What is wrong with a place that a row names; "" if nothing is."""
    if place.startswith("parley "):
        try:
            parse(shlex.split(place)[1:])
        except (SystemExit, ConfigError) as error:
            return f"{place}: {error}"
        return ""
    if place.startswith("table "):
        table = re.compile(rf'(?:\bname=|\bTable\(\s*|: )"{re.escape(place.removeprefix("table "))}"')
        return "" if table.search(code_of_reports(root)) else f"no report has the {place}"
    file, _, name = place.partition(":")
    path = root / file
    if not path.exists():
        return f"there is no {file}"
    return "" if not name or re.search(rf"\b{re.escape(name)}\b", path.read_text("utf-8")) else f"{file} has no {name}"


@pytest.mark.parametrize("name", PAPERS)
def test_every_file_table_and_command_that_a_point_names_exists(name: str, root: Path) -> None:
    places = dict.fromkeys(place for item in load_paper(name).item for place in item.where)
    assert [found for place in places if (found := problem(place, root))] == []


def test_every_place_on_the_page_of_the_architecture_exists(root: Path) -> None:
    page = (root / "docs" / "architecture.md").read_text("utf-8")
    places = re.findall(r"`((?:agents|scenarios|judging|analysis|training|parley)/[\w/]+\.py(?::\w+)?)`", page)
    assert len(places) > 20
    assert [wrong for place in places if (wrong := problem(place, root))] == []


def test_a_place_that_does_not_exist_is_found(root: Path) -> None:
    for place in (
        "judging/gone.py",
        "judging/malibu/study.py:Gone",
        "table gone",
        "parley run malibu --gone",
        "parley gone",
    ):
        assert problem(place, root), place


def test_a_point_that_differs_says_why() -> None:
    row = {"section": "1", "what": "A thing", "where": ["README.md"]}
    with pytest.raises(ValidationError, match="says why"):
        Item(**row, status="differs")
    with pytest.raises(ValidationError, match="says why"):
        Item(**row, status="whole", why="It does not.")


def test_every_prompt_is_on_the_page_of_prompts_once(root: Path) -> None:
    paths = (path.relative_to(root / "judging").with_suffix("") for path in root.glob("judging/*/prompts/**/*.txt"))
    ours = {"/".join(rest if len(rest) > 1 else (study, *rest)) for study, _, *rest in (path.parts for path in paths)}
    listed = Counter(name for prompt in load_prompts() for name in prompt.files)
    assert {name for name, times in listed.items() if times > 1} == set()
    assert set(listed) == ours


def test_every_model_of_the_papers_has_a_name_that_parley_knows_or_none() -> None:
    for model in load_models():
        assert not model.here or provider_of(model.here), model.name
