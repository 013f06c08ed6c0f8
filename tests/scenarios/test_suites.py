"""Suites: shipped views, files and folders of the user's own, parts of them, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.scenarios import Base, Scenario, Suite, load_suite

HEAD = 'schema = 1\nname = "mine"\nversion = "1"\n'
BUS = """
[[scenario]]
id = "bus"
domain = "transport"
text = "You drive a bus."
stereotype = "None."
responses = ["I stop.", "I go."]
"""
SUITE = HEAD + BUS
BASE = """
[[base]]
id = "driving"
text = "You drive for a living."
stereotype = "Drivers are taken to be men."
probes = ["gender"]
source = "Somebody (2020)"
"""
TRAM = '[[scenario]]\nid = "tram"\nbase = "driving"\ntext = "You drive a tram."\n'


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(SUITE)
    return path


def scenario(name: str, base: str = "") -> Scenario:
    return Scenario(id=name, base=base, text=f"You are at {name}.", responses=("I stop.", "I go."))


def suite(*scenarios: Scenario) -> Suite:
    return Suite(schema=1, name="mine", version="1", scenario=scenarios)


# Views


def test_the_quick_view_is_a_handful_for_a_first_look() -> None:
    quick, _ = load_suite("tiny")
    assert {item.base for item in quick.scenario} == {"childcare", "engineering", "fitness"}
    assert len(quick.scenario) == 3
    assert all(len(item.responses) == 2 for item in quick.scenario)


@pytest.mark.parametrize(("name", "scenarios", "bases"), [("wide", 120, 60), ("full", 200, 20), ("malibu-2", 280, 60)])
def test_the_larger_views(name: str, scenarios: int, bases: int) -> None:
    part, _ = load_suite(name)
    assert (part.name, part.version) == ("malibu-2", "2.0")
    assert (len(part.scenario), len(part.base)) == (scenarios, bases)
    assert {item.base for item in part.scenario} == {base.id for base in part.base}


def test_the_wide_view_has_the_first_two_scenarios_of_every_base() -> None:
    whole, wide = load_suite("malibu-2")[0], load_suite("wide")[0]
    for base in whole.base:
        first = [item.id for item in whole.scenario if item.base == base.id][:2]
        assert [item.id for item in wide.scenario if item.base == base.id] == first


def test_views_are_parts_of_one_suite_with_different_digests() -> None:
    quick, full = load_suite("tiny")[0], load_suite("full")[0]
    assert {item.id for item in quick.scenario} < {item.id for item in full.scenario}
    assert [base.id for base in quick.base] == ["childcare", "engineering", "fitness"], "those of its scenarios"
    assert quick.digest() != full.digest() == load_suite("full")[0].digest()


# One's own


def test_your_own_suite(mine: Path) -> None:
    actual, _ = load_suite(str(mine))
    assert actual.scenario[0].responses == ("I stop.", "I go.")


def test_a_scenario_needs_little_more_than_a_text(mine: Path) -> None:
    mine.write_text(HEAD + '[[scenario]]\nid = "bus"\ntext = "You drive a bus."\n')
    (bus,) = load_suite(str(mine))[0].scenario
    assert (bus.base, bus.responses) == ("", ()), "responses may come later"


def test_a_suite_of_bases_alone_is_a_place_to_derive_from(mine: Path) -> None:
    mine.write_text(HEAD + BASE)
    actual = load_suite(str(mine))[0]
    assert actual.base[0].probes == ("gender",)
    assert actual.scenario == ()


def test_a_scenario_knows_its_base(mine: Path) -> None:
    mine.write_text(HEAD + BASE + TRAM + BUS)
    actual = load_suite(str(mine))[0]
    tram, bus = actual.scenario
    assert actual.base_of(tram) == actual.base[0]
    assert actual.base_of(bus) is None


# Folders


def test_a_folder_is_one_suite_in_the_order_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(HEAD)
    (tmp_path / "b.toml").write_text(BUS)
    (tmp_path / "a.toml").write_text(BASE + TRAM)
    (tmp_path / "notes.txt").write_text("not looked at")
    actual = load_suite(str(tmp_path))[0]
    assert (actual.name, actual.version) == ("mine", "1")
    assert [item.id for item in actual.scenario] == ["tram", "bus"]
    assert [item.id for item in actual.base] == ["driving"]


def test_the_same_suite_in_one_file_and_in_a_folder_is_the_same_suite(tmp_path: Path, mine: Path) -> None:
    mine.write_text(HEAD + BASE + TRAM + BUS)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "suite.toml").write_text(HEAD)
    (folder / "all.toml").write_text(BASE + TRAM + BUS)
    assert load_suite(str(folder))[0].digest() == load_suite(str(mine))[0].digest()


# Parts


SOME = suite(scenario("a", "x"), scenario("b", "x"), scenario("c", "y"), scenario("d"), scenario("e"))


@pytest.mark.parametrize(
    ("names", "per_base", "stored"),
    [
        (None, None, "abcde"),
        (["b"], None, "b"),
        (["x"], None, "ab"),
        (["y", "a"], None, "ac"),
        (None, 1, "acde"),
        (["x"], 1, "a"),
        (["b", "x"], 1, "a"),
        (None, 2, "abcde"),
    ],
)
def test_a_part_of_a_suite(names: list[str] | None, per_base: int | None, stored: str) -> None:
    """By id or base, with a maximum per base; a scenario without a base is its own group."""
    part = SOME.only(names, per_base)
    assert [item.id for item in part.scenario] == list(stored)
    assert part.model_copy(update={"scenario": SOME.scenario}) == SOME, "nothing else has changed"


def test_per_base_takes_the_first_of_every_base() -> None:
    full = load_suite("full")[0]
    item = full.only(per_base=1)
    assert len(item.scenario) == 20
    assert [first.base for first in item.scenario] == [base.id for base in full.base]


# There and back


def test_a_shipped_suite_comes_back_from_its_toml(tmp_path: Path) -> None:
    full = load_suite("full")[0]
    (tmp_path / "full.toml").write_text(full.to_toml(), "utf-8")
    again = load_suite(str(tmp_path / "full.toml"))[0]
    assert again == full
    assert again.digest() == full.digest()


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1, max_size=60)
IDS = st.from_regex(r"[a-z0-9][a-z0-9-]{0,8}", fullmatch=True)


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=3),
    pair=st.one_of(st.just(()), st.tuples(TEXTS, TEXTS)),
    about=st.one_of(st.just(""), TEXTS),
    base=st.one_of(st.just(""), IDS),
)
def test_any_suite_comes_back_from_its_toml(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], pair: tuple[str, str], about: str, base: str
) -> None:
    bases = (Base(id=base, text=texts[0], stereotype=texts[-1], probes=("gender",)),) if base else ()
    rows = tuple(Scenario(id=f"s{n}", base=base, text=text, role=about, responses=pair) for n, text in enumerate(texts))
    before = Suite(schema=1, name=texts[0], version="1", about=about, base=bases, scenario=rows)
    path = tmp_path_factory.getbasetemp() / "there-and-back.toml"
    path.write_text(before.to_toml(), "utf-8")
    assert load_suite(str(path))[0] == before


def test_a_base_whose_stereotype_is_left_empty_comes_back(mine: Path) -> None:
    mine.write_text(HEAD + BASE.replace("Drivers are taken to be men.", ""))
    actual = load_suite(str(mine))[0]
    mine.write_text(actual.to_toml(), "utf-8")
    assert load_suite(str(mine))[0] == actual
