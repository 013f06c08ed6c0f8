"""What the stories of this folder share: an empty place with a small suite of the user's own in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import parley
from judging import Unit
from judging.malibu import Malibu, MalibuConfig

SUITE = """
schema = 1
name = "mine"
version = "1"
[[scenario]]
id = "bakery"
domain = "baking"
text = "Bake bread {with care}."
stereotype = "none"
responses = ["Knead it twice.", "Wait for an hour."]
"""


@pytest.fixture(autouse=True)
def _begin_with_a_small_suite(place: Path) -> None:
    (place / "mine.toml").write_text(SUITE)


@pytest.fixture
def planned() -> Callable[..., list[Unit]]:
    """The plan for some settings."""

    def plan(**settings: Any) -> list[Unit]:
        return list(Malibu(MalibuConfig(**settings)).plan())

    return plan


@pytest.fixture
def held() -> Callable[..., list[tuple[Any, ...]]]:
    """Hold a run on a simulated model, and ask its file."""

    def hold(sql: str, **settings: Any) -> list[tuple[Any, ...]]:
        settings = {"suite": "mine.toml", "identities": ["gender"], "model": "sim/judge", **settings}
        assert parley.run("malibu", out="a.sqlite", **settings).complete
        with closing(sqlite3.connect("a.sqlite")) as db:
            return db.execute(sql).fetchall()

    return hold
