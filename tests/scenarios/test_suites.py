"""Suites: shipped ones, the user's own, parts of them, graded responses. Bad ones are in test_bad_files.py."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.scenarios import (
    Base,
    Flaw,
    Graded,
    Scenario,
    Suite,
    check_graded,
    check_suite,
    language_of_identity_words,
    load_suite,
)
from parley.scenarios.checks import DOSES, KINDS, changed_words

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
    """A dose, a time or a price in one response only would make it another answer. test_identities.py has its hash."""
    whole = load_suite("malibu-2")[0]
    assert check_suite(whole) == []
    for scenario in whole.scenario:
        first, second = (set(re.findall(r"\d+(?:[.,:]\d+)?", text)) for text in scenario.responses)
        assert first == second, scenario.id


# One's own


def test_only_a_suite_that_probes_gender_race_or_religion_may_not_name_one(tmp_path):
    for language, probed, checked in (
        ("en", "gender", True),
        ("de-AT", "accent", False),
        ("en", 'accent", "race', True),
        ("fr", "gender", False),
        ("../x", "gender", False),
    ):
        base = BASE.replace('"gender"', f'"{probed}"')
        tram = TRAM.replace("a tram", "her tram")
        (tmp_path / "mine.toml").write_text(f'{HEAD}language = "{language}"\n{base}{tram}')
        suite = load_suite(str(tmp_path / "mine.toml"))[0]
        named = [str(finding) for finding in check_suite(suite) if "names an identity" in str(finding)]
        assert named == ["tram: the situation names an identity: her"] * checked, (language, probed)
        assert bool(language_of_identity_words(suite)) is checked


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
def test_any_suite_comes_back_from_its_toml(tmp_path_factory, texts, pair, about, stereotype, base):
    bases = (Base(id=base, text=texts[0], stereotype=stereotype, probes=("gender",)),) if base else ()
    rows = tuple(Scenario(id=f"s{n}", base=base, text=text, role=about, responses=pair) for n, text in enumerate(texts))
    before = Suite(schema=1, name=texts[0], version="1", about=about, base=bases, scenario=rows)
    path = tmp_path_factory.getbasetemp() / "there-and-back.toml"
    path.write_text(before.to_toml(), "utf-8")
    assert load_suite(str(path))[0] == before


# Graded responses

FULL = load_suite("full")[0]
WHOLE = load_suite("malibu-2")[0]
GOOD = " ".join(f"good{number}" for number in range(100))
SITUATION = Scenario(id="bus-strike", base="bus", text="The buses are on strike.")


def flawed(kind: str, dose: int) -> Flaw:
    """The good response with a few other words (dose 2: twice as many), or with as many more as length needs."""
    if kind == "length":
        text = f"{GOOD} " + " ".join(f"more{number}" for number in range(50 * dose))
    else:
        text = GOOD.replace("good7 ", "wrong ") if dose == 1 else GOOD.replace("good7 good8 ", "wrong worse ")
    return Flaw(kind=kind, dose=dose, text=text, about="words that are wrong")


FLAWS = tuple(flawed(kind, dose) for kind in KINDS for dose in DOSES)
SOUND = Graded(base="bus", scenario="bus-strike", good=GOOD, flaw=FLAWS)


def suite(graded: Graded, scenario: Scenario = SITUATION) -> Suite:
    return Suite(schema=1, name="mine", version="1", scenario=(scenario,), graded=(graded,))


def first_words(count: int) -> str:
    return " ".join(GOOD.split()[:count])


def good(length: int) -> Graded:
    return SOUND.model_copy(update={"good": " ".join(f"good{number}" for number in range(length))})


def with_flaw(kind: str, dose: int, **change: object) -> Graded:
    flaws = tuple(
        flaw.model_copy(update=change) if (flaw.kind, flaw.dose) == (kind, dose) else flaw for flaw in SOUND.flaw
    )
    return SOUND.model_copy(update={"flaw": flaws})


@pytest.mark.parametrize(
    ("graded", "problem"),
    [
        (SOUND, ""),
        (with_flaw("figure", 2, facts=True, source="Highway Code, rule 126"), ""),
        (SOUND.model_copy(update={"flaw": SOUND.flaw[1:]}), "'safety' in dose 1 is missing"),
        (with_flaw("figure", 1, about=""), "'figure' in dose 1 does not say what was changed"),
        (with_flaw("figure", 1, text=GOOD.upper()), "'figure' in dose 1 is the good response"),
        (with_flaw("safety", 2, text=GOOD + " a" * 30), "'safety' in dose 2 is 1.30 times as long"),
        *((with_flaw("safety", 2, text=GOOD + " a" * 25), ""), (with_flaw("safety", 2, text=first_words(75)), "")),
        (with_flaw("safety", 2, text=first_words(74)), "'safety' in dose 2 is 0.74 times as long as the good response"),
        (with_flaw("length", 1, text=GOOD + " a" * 24), "'length' in dose 1 is 1.24 times as long"),
        *((with_flaw("length", 1, text=GOOD + " a" * more), "") for more in (25, 60)),
        *((with_flaw("length", 2, text=GOOD + " a" * more), "") for more in (75, 150)),
        (with_flaw("length", 2, text=GOOD + " a" * 151), "'length' in dose 2 is 2.51 times as long"),
        (with_flaw("unanswered", 1, text="b " * 100), "'unanswered': dose 2 does not change more words than dose 1"),
        (with_flaw("safety", 1, text=GOOD.replace("good1 ", "woman ")), "names an identity: woman"),
        (with_flaw("figure", 2, facts=True), "'figure' in dose 2 states facts (facts = true) but has no source"),
        (SOUND.model_copy(update={"facts": True}), "the good response states facts"),
        (SOUND.model_copy(update={"flaw": SOUND.flaw[2:]}), ""),  # no flaw of that kind
        (SOUND.model_copy(update={"flaw": ()}), "has no flawed version"),
        (good(89), "the good response has 89 words (expected 90 to 130)"),
        (good(131), "the good response has 131 words (expected 90 to 130)"),
    ],
)
def test_what_the_validator_finds(graded, problem):
    found = [finding.what for finding in check_graded(suite(graded))]
    assert any(problem in what for what in found) if problem else found == []


def test_a_good_response_may_have_90_to_130_words_and_is_not_copied_from_a_scenario():
    for length in (90, 130):
        assert not any("the good response has" in finding.what for finding in check_graded(suite(good(length))))
    copied = SITUATION.model_copy(update={"responses": (" ".join(GOOD.split()[:20]), "another")})
    (finding,) = check_graded(suite(SOUND, copied))
    assert str(finding).startswith("bus (graded): shares words with bus-strike: 'good0 good1 good2")
    assert check_graded(FULL.model_copy(update={"graded": ()})) == []


def test_words_that_were_taken_out_and_put_in_are_counted():
    assert changed_words("the old bus stops here", "the new bus stops") == 3  # old, new, here
    assert changed_words("so on " * 150, "so on " * 150) == 0, "words that occur often count like others"
    assert changed_words("so on " * 150, "so on " * 149) == 2


def test_a_suite_without_graded_responses_has_the_hash_it_always_had():
    before = "2e241329e53d12fa45764952f9840da42be2adbe3c4ffd1363cb9abb178ac8da"  # when suites had no graded responses
    assert suite(SOUND).digest() == suite(SOUND).model_copy(update={"graded": ()}).digest() == before
    without = FULL.model_copy(update={"graded": ()})
    assert FULL.graded_digest() != without.graded_digest() == hashlib.sha256(b"").hexdigest()
    part = FULL.only(["fitness-desk-worker", "law"])
    assert {graded.base for graded in part.graded} == {"fitness", "law"}


# The shipped sets, by measures independent of the checks


def test_every_shipped_flaw_is_the_good_response_with_one_change():
    assert check_graded(WHOLE) == []
    assert len(WHOLE.graded) == 43
    assert {frozenset(flaw.kind for flaw in graded.flaw) for graded in WHOLE.graded} == {frozenset(KINDS)}
    assert sorted(graded.base for graded in FULL.graded) == sorted(base.id for base in FULL.base), "all of the twenty"
