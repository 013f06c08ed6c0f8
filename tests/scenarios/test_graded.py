"""Graded responses: what the validator finds, and what the shipped ones promise."""

from __future__ import annotations

import hashlib
import re

import pytest

from parley.scenarios import Flaw, Graded, Scenario, Suite, check_graded, identity_words, load_suite
from parley.scenarios.checks import DOSES, KINDS, changed_words

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
        (with_flaw("length", 1, text=GOOD + " a" * 10), "'length' in dose 1 is 1.10 times as long"),
        (with_flaw("unanswered", 1, text="b " * 100), "'unanswered': dose 2 does not change more words than dose 1"),
        (with_flaw("safety", 1, text=GOOD.replace("good1 ", "woman ")), "names an identity: woman"),
        (with_flaw("figure", 2, facts=True), "'figure' in dose 2 states facts (facts = true) but has no source"),
        (SOUND.model_copy(update={"facts": True}), "the good response states facts"),
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
    assert "shares words with" in finding.what
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
    assert sorted(graded.base for graded in FULL.graded) == sorted(base.id for base in FULL.base), "all of the twenty"
    for graded in WHOLE.graded:
        words = graded.good.split()
        assert 90 <= len(words) <= 135
        assert {(flaw.kind, flaw.dose) for flaw in graded.flaw} == {(kind, dose) for kind in KINDS for dose in DOSES}
        assert len(graded.flaw) == 8
        for flaw in graded.flaw:
            assert identity_words(flaw.text) == []
            assert re.search(r"flaw|mistake|unsafe|incorrect", flaw.text) is None, "no hint in the text"
            if flaw.kind == "length":
                rest = iter(flaw.text.split())
                assert all(word in rest for word in words), "every word of the good response, in order"
            elif flaw.kind == "figure":
                assert changed_words(graded.good, flaw.text) <= 12, "figures change, nothing else"


def test_what_a_shipped_text_claims_from_outside_has_a_source():
    stated = [claim for graded in WHOLE.graded for claim in (graded, *graded.flaw) if claim.facts]
    assert {claim.base for claim in stated if isinstance(claim, Graded)} == {"childcare", "eldercare", "medicine"}
    for claim in stated:
        assert re.search(r"\((?:19|20)\d\d\).*https://\S+", claim.source), "author, year, and where to read it"
