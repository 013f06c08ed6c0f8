"""Suites: shipped ones, files and folders of the user's own, and parts of them. Bad ones are in test_bad_files.py."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.scenarios import Base, Scenario, Suite, check_suite, load_suite

HEAD = 'schema = 1\nname = "mine"\nversion = "1"\n'
BUS = """
[[scenario]]
id = "bus"
domain = "transport"
text = "You drive a bus."
stereotype = "None."
responses = ["I stop.", "I go."]
"""
BASE = """
[[base]]
id = "driving"
text = "You drive for a living."
stereotype = "Drivers are taken to be men."
probes = ["gender"]
source = "Somebody (2020)"
"""
TRAM = '[[scenario]]\nid = "tram"\nbase = "driving"\ntext = "You drive a tram."\n'


@pytest.mark.parametrize(
    ("name", "scenarios", "bases"), [("tiny", 3, 3), ("wide", 120, 60), ("full", 200, 20), ("malibu-2", 280, 60)]
)
def test_the_shipped_suites_are_parts_of_one(name, scenarios, bases):
    part, whole = load_suite(name)[0], load_suite("malibu-2")[0]
    assert (part.name, part.version) == ("malibu-2", "2.0")
    assert (len(part.scenario), len(part.base)) == (scenarios, bases)
    assert {item.base for item in part.scenario} == {base.id for base in part.base}
    assert set(part.scenario) <= set(whole.scenario)
    assert (part.digest() == whole.digest()) is (name == "malibu-2")
    assert part.digest() == load_suite(name)[0].digest()
    if name == "wide":
        for base in whole.base:
            first = [item.id for item in whole.scenario if item.base == base.id][:2]
            assert [item.id for item in part.scenario if item.base == base.id] == first
    if name == "tiny":
        assert [base.id for base in part.base] == ["childcare", "engineering", "fitness"]
        assert all(len(item.responses) == 2 for item in part.scenario)


def test_the_shipped_suite_passes_its_checks_and_both_responses_have_the_same_figures():
    """A dose, a time or a price in one response only would make it another answer. test_directions.py has its hash."""
    whole = load_suite("malibu-2")[0]
    assert check_suite(whole) == []
    for scenario in whole.scenario:
        first, second = (set(re.findall(r"\d+(?:[.,:]\d+)?", text)) for text in scenario.responses)
        assert first == second, scenario.id


# One's own


def test_a_scenario_needs_little_more_than_a_text_and_knows_its_base(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text(HEAD + BASE + TRAM + BUS)
    actual = load_suite(str(mine))[0]
    tram, bus = actual.scenario
    assert (tram.responses, bus.base, bus.responses) == ((), "", ("I stop.", "I go.")), "responses may come later"
    assert (actual.base_of(tram), actual.base_of(bus)) == (actual.base[0], None)
    mine.write_text(HEAD + BASE)
    bare = load_suite(str(mine))[0]
    assert (bare.base[0].probes, bare.scenario) == (("gender",), ()), "a place to derive from"


def test_a_folder_is_one_suite_in_the_order_of_its_files(tmp_path):
    for name, text in (("suite.toml", HEAD), ("b.toml", BUS), ("a.toml", BASE + TRAM), ("notes.txt", "not looked at")):
        (tmp_path / name).write_text(text)
    actual = load_suite(str(tmp_path))[0]
    assert [item.id for item in actual.scenario] == ["tram", "bus"]
    mine = tmp_path.parent / f"{tmp_path.name}.toml"
    mine.write_text(HEAD + BASE + TRAM + BUS)
    assert load_suite(str(mine))[0] == actual
    assert load_suite(str(mine))[0].digest() == actual.digest()


# Parts


def scenario(name: str, base: str = "") -> Scenario:
    return Scenario(id=name, base=base, text=f"You are at {name}.", responses=("I stop.", "I go."))


SOME = Suite(
    schema=1,
    name="mine",
    version="1",
    scenario=(scenario("a", "x"), scenario("b", "x"), scenario("c", "y"), scenario("d"), scenario("e")),
)


@pytest.mark.parametrize(
    ("names", "per_base", "stored"),
    [
        *((None, None, "abcde"), (["b"], None, "b"), (["x"], None, "ab"), (["y", "a"], None, "ac")),
        *((None, 1, "acde"), (["x"], 1, "a"), (["b", "x"], 1, "a"), (None, 2, "abcde")),
    ],
)
def test_a_part_of_a_suite(names, per_base, stored):
    """By id or base, with a maximum per base; a scenario without a base is its own group."""
    part = SOME.only(names, per_base)
    assert [item.id for item in part.scenario] == list(stored)
    assert part.model_copy(update={"scenario": SOME.scenario}) == SOME, "nothing else has changed"
    full = load_suite("full")[0]
    assert [first.base for first in full.only(per_base=1).scenario] == [base.id for base in full.base]


# There and back


def test_a_shipped_suite_comes_back_from_its_toml(tmp_path):
    full = load_suite("full")[0]
    (tmp_path / "full.toml").write_text(full.to_toml(), "utf-8")
    again = load_suite(str(tmp_path / "full.toml"))[0]
    assert (again, again.digest()) == (full, full.digest())


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1, max_size=60)
IDS = st.from_regex(r"[a-z0-9][a-z0-9-]{0,8}", fullmatch=True)
OR_NONE = st.one_of(st.just(""), TEXTS)


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=3),
    pair=st.one_of(st.just(()), st.tuples(TEXTS, TEXTS)),
    about=OR_NONE,
    stereotype=OR_NONE,
    base=st.one_of(st.just(""), IDS),
)
def test_any_suite_comes_back_from_its_toml(
    tmp_path_factory,
    texts,
    pair,
    about,
    stereotype,
    base,
):
    bases = (Base(id=base, text=texts[0], stereotype=stereotype, probes=("gender",)),) if base else ()
    rows = tuple(Scenario(id=f"s{n}", base=base, text=text, role=about, responses=pair) for n, text in enumerate(texts))
    before = Suite(schema=1, name=texts[0], version="1", about=about, base=bases, scenario=rows)
    path = tmp_path_factory.getbasetemp() / "there-and-back.toml"
    path.write_text(before.to_toml(), "utf-8")
    assert load_suite(str(path))[0] == before
