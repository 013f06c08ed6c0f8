"""The leaderboard's page in a real browser, opened from the disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from parley.analysis.card.leaderboard import Entry, board_page, make_board
from parley.analysis.card.record import Card
from tests.cards import around, card, line

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'parley-autogen[dev]'")
expect = playwright.expect
ACCESSIBILITY = (Path(__file__).parent / "accessibility.js").read_text("utf-8").split("\n", 1)[1]
HOSTILE = '<img src=x onerror="window.stolen=1"></script>\u202e{{x}}'
MODELS = 200


def judge(number: int, name: str = "", **changes: object) -> Card:
    auc = 0.5 if number % 3 == 0 else 0.8
    about = {"group": "judging", "reference": 0.5, "worse": "lower", "label": "good or bad"}
    judging = line("judge", around(auc, bases=8, seed=number), **about)
    gender = line("gender", around(0.05 * number, bases=8, seed=number), group="labels", label="female − male")
    return card(name or f"hf/model-{number}", judging, gender, **changes)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """200 models, one of which has a hostile name, and a simulated one."""
    cards = [*(judge(number) for number in range(MODELS - 1)), judge(1, HOSTILE), judge(2, "sim/x", simulated=True)]
    page = tmp_path_factory.mktemp("board") / "leaderboard.html"
    page.write_text(board_page(make_board([Entry(card=each) for each in cards])), "utf-8")
    return page.as_uri()


def names(page: Any) -> list[str]:
    found: list[str] = page.locator("#board tbody th[scope=row] button.plain").all_inner_texts()
    return found


def test_two_hundred_models_are_sorted_compared_and_unfolded(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(f"{address}#gender")
    assert len(names(page)) == MODELS
    assert names(page)[:2] == ["hf/model-1", HOSTILE], "the smallest distance of those that can judge"
    greyed = page.locator("#board tbody tr.grey").count()
    assert names(page)[-greyed:] == [f"hf/model-{number}" for number in range(0, MODELS - 1, 3)]
    assert page.locator("#others tbody tr").count() == 1
    assert "a simulated model" in page.locator("#others .pill").inner_text()

    page.get_by_role("button", name="compare all with hf/model-4", exact=True).click()
    expect(page.locator("#compared")).to_contain_text("Compared with hf/model-4")
    page.get_by_role("button", name="hf/model-2", exact=True).click()
    expect(page.locator(".detail")).to_contain_text("minus hf/model-4")
    page.locator("#find").fill("model-2")
    assert all("model-2" in name for name in names(page))
    assert page.evaluate("window.stolen") is None


def test_its_statistics_are_scipys(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(address)
    one, two = around(0.3, sd=0.5, bases=8), around(0.0, sd=0.5, bases=8, seed=7)
    found = page.evaluate(
        "([a, b]) => parleyLeaderboard.difference({values: a, verdict: 'alike'}, {values: b, verdict: 'alike'})",
        [one, two],
    )
    exact = stats.ttest_rel(one, two)
    low, high = exact.confidence_interval()
    assert [found[key] for key in ("estimate", "p", "low", "high")] == pytest.approx(
        [np.mean(one) - np.mean(two), exact.pvalue, low, high], rel=1e-5
    )
    holm = "(found) => { parleyLeaderboard.holm(found); return found.map((one) => one.corrected); }"
    assert page.evaluate(holm, [{"p": 0.01}, {"p": 0.04}, {"p": 0.03}]) == pytest.approx([0.03, 0.06, 0.06])


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1440)])
def test_everybody_can_read_it(open_page: Callable[..., Any], address: str, width: int, scheme: str) -> None:
    page = open_page(f"{address}#gender", color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.locator("#find").fill("model-1")
    page.get_by_role("button", name="hf/model-1", exact=True).click()
    assert page.evaluate(ACCESSIBILITY) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
