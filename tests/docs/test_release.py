"""The part of the release check that needs no network; `python -m docs.release` does the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from docs.giveaways import tell_apart
from docs.release import NotReady, fit_suite, version_and_changelog
from parley.scenarios import Suite, load_suite

WIDE: Suite = load_suite("wide")[0]


def test_the_changelog_begins_with_this_version(root: Path) -> None:
    assert version_and_changelog(root)


def test_a_version_that_is_not_in_the_changelog_is_not_released(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.1.0\n\nThe first version.\n")
    with pytest.raises(NotReady, match=r"0\.2\.0"):
        version_and_changelog(tmp_path)


def test_the_shipped_responses_do_not_give_themselves_away() -> None:
    assert fit_suite().startswith("128 of 280 pairs told apart (chance 140; p = 0.89 over 60 bases)")


Habit = Callable[[str, str, int], tuple[str, str]]


@pytest.mark.parametrize(
    ("habit", "tell"),
    [
        pytest.param(lambda one, two, n: (one, f"{two} Hence."), "hence 0:120", id="a word of all second responses"),
        pytest.param(lambda one, two, n: (one, two + " …" * 40), "(length)", id="length alone"),
    ],
)
def test_a_planted_habit_is_found_and_named(habit: Habit, tell: str) -> None:
    result = tell_apart(_with(habit))
    assert (result.pairs, result.bases) == (120, 60)
    assert result.found
    assert result.tells[0].startswith(tell)


@pytest.mark.parametrize(
    "habit",
    [
        pytest.param(lambda one, two, n: (one, one), id="equal texts are ties"),
        pytest.param(lambda one, two, n: (f"a{n // 2}", f"b{n // 2}"), id="a base's own words are no help in others"),
    ],
)
def test_what_cannot_be_told_apart_is_at_chance(habit: Habit) -> None:
    result = tell_apart(_with(habit))
    assert (result.told_apart, result.p, result.found) == (60, 1.0, False)


def _with(habit: Habit) -> Suite:
    changed = [
        scenario.model_copy(update={"responses": habit(*scenario.responses, number)})
        for number, scenario in enumerate(sorted(WIDE.scenario, key=lambda scenario: scenario.base))
    ]
    return WIDE.with_scenarios(changed)
