"""The types of `parley.run`'s keywords: made from the studies' configs, and read by type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never, assert_type

import parley
from docs import settings
from parley.runs import Result, job

if TYPE_CHECKING:  # for the type checker of tests/test_house.py alone

    def keywords_have_types(known: dict[str, Any]) -> None:
        assert_type(parley.run("malibu", suite="quick", model="sim/judge", identities=["gender"], out="a"), Result)
        assert_type(parley.run(model=["sim/judge", "sim/other"], design="silent", per_base=1), Result)
        assert_type(parley.run("bbq", data="bbq", method=["mabrf"], options=parley.Options(concurrency=2)), Result)
        assert_type(parley.run("mine.py:Mine", colour="red", out="a"), Result)
        assert_type(parley.run("topics", bias="age"), Result)
        parley.run("malibu", **known)

    async def also_in_a_notebook() -> None:
        assert_type(await parley.run_async("rldf", topics=3, mode="teacher-guides"), Result)

    def a_key_that_the_study_does_not_have() -> None:
        assert_type(parley.run("malibu", suit="quick"), Never)

    def a_value_of_another_type() -> None:
        assert_type(parley.run("bbq", limit="three"), Never)


def test_the_types_are_those_of_the_configs() -> None:
    assert settings.TARGET.read_text("utf-8") == settings.source(), "python -m docs.settings writes them again"


def test_only_the_types_are_others() -> None:
    assert (parley.run, parley.run_async) == (job.run, job.run_async)
