"""Claims of papers: each form on simulated values with an effect, with none, and with its opposite."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from parley.analysis.claims.claim import Claim, rows_of
from parley.analysis.claims.contrasts import ratio
from parley.analysis.claims.page import claims_table, layouts, summary
from parley.judging.papers import PAPERS, paper, printed
from tests.analysis.claimed import NOTHING, arms, falsely, found, scaled, verdicts, without_effect

ABOUT = {"quote": "as claimed", "section": "1", "measure": "score"}
LOWER = Claim(**ABOUT, form="lower", first="ours", second="default")
HALF = Claim(**ABOUT, form="lower", first="ours", second="default", by=0.5)
HIGHER = Claim(**ABOUT, form="higher", first="ours", second="default")
LOWEST = Claim(**ABOUT, form="lowest", first="ours", second=("default", "other"))
NEAREST = Claim(**ABOUT, form="lower", first="ours", second="default", magnitude=True)
ABOVE = Claim(**ABOUT, form="above", first="ours", level=90)
KEPT = Claim(**ABOUT, form="kept", first="ours", second="default", margin=5)
WITHIN = Claim(**ABOUT, form="within", level=50, margin=6.25)
DIFFER = Claim(**ABOUT, form="differ")


@pytest.mark.parametrize(
    ("claim", "effect", "none", "opposite"),
    [
        (LOWER, {"ours": 8, "default": 10}, {"ours": 10, "default": 10}, {"ours": 12, "default": 10}),
        (HIGHER, {"ours": 12, "default": 10}, {"ours": 10, "default": 10}, {"ours": 8, "default": 10}),
        (
            LOWEST,
            {"ours": 8, "default": 10, "other": 9},
            {"ours": 9, "default": 10, "other": 9},
            {"ours": 9, "default": 10, "other": 8},
        ),
        (NEAREST, {"ours": -2, "default": 10}, {"ours": -10, "default": 10}, {"ours": -20, "default": 10}),
        (ABOVE, {"ours": 92}, {"ours": 90}, {"ours": 88}),
        (KEPT, {"ours": 48, "default": 50}, {"ours": 45, "default": 50}, {"ours": 30, "default": 50}),
        (WITHIN, {"a": 52, "b": 48}, {"a": 56.25, "b": 43.75}, {"a": 60, "b": 40}),
    ],
)
def test_each_form_is_replicated_undecided_or_contrary(claim, effect, none, opposite):
    said = [[each.verdict for each in found(arms(**means), claim)] for means in (effect, none, opposite)]
    if claim is KEPT:  # a fall of just the margin is one
        assert said == [["replicated"], ["contrary"], ["contrary"]]
    else:
        assert said == [["replicated"], ["undecided"], ["contrary"]]


def test_a_joint_test_finds_a_difference_and_never_says_that_there_is_none():
    assert [each.verdict for each in found(arms(a=1, b=2, c=3), DIFFER)] == ["replicated"]
    assert [each.verdict for each in found(arms(a=1, b=1, c=1), DIFFER)] == ["undecided"]


@pytest.mark.parametrize(
    ("ours", "verdict"), [(4.0, ["replicated", "replicated"]), (8.0, ["replicated", "contrary in size"])]
)
def test_direction_and_size_are_two_rows(ours, verdict):
    findings = found(arms(ours=ours, default=10), HALF)
    assert [each.verdict for each in findings] == verdict
    point, low, high = findings[1].evidence.deciding.ratio
    assert low < ours / 10 < high
    assert point == pytest.approx(ours / 10, abs=0.05)


def test_a_contrary_direction_leaves_no_size():
    assert [each.verdict for each in found(arms(ours=12, default=10), HALF)] == ["contrary", "contrary"]


def test_a_ratios_interval_is_fiellers():
    """Fieller's interval: the roots of (Σx − rΣy)² = t² n/(n−1) Σ(x − ry − mean)², where clusters are not skewed."""
    rng = np.random.default_rng(3)
    y = 10 + rng.normal(size=60)
    x = 0.8 * y + rng.normal(size=60)
    t = 2.000995  # qt(0.975, 59) in R
    (a, b), (c, d) = (np.cov(x, y) / 60).tolist()
    quadratic = [y.mean() ** 2 - t**2 * d, -2 * (x.mean() * y.mean() - t**2 * b), x.mean() ** 2 - t**2 * a]
    assert c == b
    assert ratio(x, y) == pytest.approx((x.mean() / y.mean(), *sorted(np.roots(quadratic))), abs=2e-4)


def test_what_a_run_leaves_out_still_counts_in_the_correction():
    only = arms(clusters=12, sd=1.0, ours=9.0, default=10.0)
    others = [Claim(**{**ABOUT, "measure": f"m{n}"}, form="lower", first="a", second="b") for n in range(30)]
    (alone,), (first, *rest) = found(only, LOWER), found(only, LOWER, *others)
    assert first.p == pytest.approx(min(1, 31 * alone.p))
    assert {each.verdict for each in rest} == {"not measured"}
    assert rest[0].why == "needs m0"


def test_lowest_of_all_needs_all_of_them():
    lower, higher = (found(arms(ours=value, default=10), LOWEST)[0] for value in (8, 12))
    assert (lower.verdict, lower.why) == ("not measured", "needs other")
    assert higher.verdict == "contrary", "one that is lower is enough"


def test_kept_needs_as_many_clusters_as_the_claim_names():
    few = KEPT.model_copy(update={"least": 150})
    (finding,) = found(arms(clusters=40, ours=50, default=50), few)
    assert (finding.verdict, finding.why) == ("undecided", "too few: at least 150 clusters")
    assert found(arms(clusters=160, ours=50, default=50), few)[0].verdict == "replicated"


def test_too_few_clusters_say_so():
    (finding,) = found(arms(clusters=5, sd=0.1, ours=1, default=10), LOWER)
    assert (finding.verdict, finding.why) == ("undecided", "too few: 1 tests need at least 6 clusters")


@pytest.mark.parametrize(("r", "verdict"), [(0.0, "replicated"), (0.8, "undecided")])
def test_unrelated_is_shown_within_a_margin(r, verdict):
    rng = np.random.default_rng(1)
    x = rng.normal(size=400)
    both = {"fall": x, "gain": r * x + math.sqrt(1 - r**2) * rng.normal(size=400)}
    rows = pd.DataFrame(both).melt(var_name="method")
    given = rows.assign(model="m", measure="score", set="", cluster=rows.index % 100, item=rows.index % 400)
    claim = Claim(**ABOUT, form="unrelated", first="fall", second="gain", margin=0.3)
    assert [each.verdict for each in found(given, claim)] == [verdict]


def test_a_method_on_a_model_of_its_own_stands_beside_every_model():
    given = arms(ours=1, default=5).assign(model=lambda frame: frame["method"].map({"ours": "big", "default": ""}))
    given["method"] = given["method"].replace({"default": "default (gpt2)"})
    assert [(each.model, each.verdict) for each in found(given, LOWER)] == [("big", "replicated")]


def test_a_claim_about_a_model_is_tested_on_it_if_it_was_run():
    given = pd.concat([arms(ours=1, default=5).assign(model=name) for name in ("openai/gpt-4", "other")])
    about_one = LOWER.model_copy(update={"model": "GPT-4"})
    assert [each.model for each in found(given, LOWER, about_one)] == ["openai/gpt-4", "other", "openai/gpt-4"]


def test_a_simulated_model_gets_no_verdict():
    findings = found(arms(ours=1, default=5), LOWER)
    (row,) = claims_table(findings, simulated=True).frame.to_dict("records")
    assert row["verdict"] == "simulated: no verdict"
    assert row["tested"] == "score lower, ours against default"
    assert summary(findings) == "1 testable row: 1 replicated."


def test_a_page_counts_its_verdicts_above_the_table_and_shows_each_beside_what_is_tested():
    findings = found(arms(ours=1, default=5), LOWER)
    table, unfinished = claims_table(findings), claims_table(findings, unfinished=True)
    assert table.title == "Do the paper's claims hold? 1 testable row: 1 replicated."
    assert list(table.view().columns[:3]) == ["claim", "tested", "verdict"]
    assert unfinished.title == "Do the paper's claims hold?"


def test_a_claim_quotes_at_most_fifteen_words_and_says_why_it_is_not_tested():
    with pytest.raises(ValidationError, match="more than 15 words"):
        Claim(quote="word " * 16, section="1", form="lower")
    with pytest.raises(ValidationError, match="without `why`"):
        Claim(quote="about 12%", section="1", form="not testable")


@pytest.mark.parametrize("name", PAPERS)
def test_a_papers_rows_have_names_that_its_tables_have(name):
    """A typing error in a file of claims would be a row that no run ever measures."""
    cells = printed(name)
    for row in rows_of(paper(name).claim):
        if (row.measure in set(cells["measure"])) and row.claim.form not in ("not testable", "by construction"):
            of_row = cells[(cells["measure"] == row.measure) & (cells["set"] == row.set)]
            names = {method.partition(" (")[0] for method in of_row["method"]}
            assert row.claim.paper or {row.first, row.second} - {""} <= names, row.what


def test_where_stardtoxs_own_tables_bear_its_claims_out():
    """docs/papers.md: not the lowest on high prompts, not half on high prompts, accuracy not kept."""
    findings = found(NOTHING, *paper("stardtox").claim, theirs=printed("stardtox"))
    held = {each.row.what.partition(" against each")[0]: each.papers_models_that_hold for each in findings}
    assert held["toxicity lower by more than 50%, moderate: stardtox against default"] == [True]
    assert held["toxicity lower by more than 50%, high: stardtox against default"] == [False]
    assert held["toxicity lowest, high: stardtox"] == [False]
    assert held["toxicity lowest, high: stardtox-no-performance"] == [True]
    assert held["accuracy at most 5 lower, ambiguous: stardtox against default"] == [False]
    assert held["accuracy at most 5 lower, disambiguated: stardtox against default"] == [False]
    assert held["bias nearest to 0, disambiguated: stardtox"] == [True]


def test_where_mabrfs_own_tables_bear_its_claims_out():
    """|BIAS| rises in table 5, where every chain is judged unbiased: docs/papers.md."""
    findings = found(NOTHING, *paper("mabrf").claim, theirs=printed("mabrf"))
    held = {each.row.what: each.papers_models_that_hold for each in findings if each.paper}
    assert held["BIAS nearer to 0, all: mabrf, after against mabrf, before"] == [False] * 4
    assert held["BIAS nearer to 0, Disability_status: mabrf, after against mabrf, before (theirs: gpt-4)"] == [True]
    assert held["exact match higher, SQuAD v2: with search against without search (theirs: gpt-4)"] == [True]


def test_a_papers_table_has_its_layout():
    given = arms(default=10, stardtox=5, measure="toxicity").assign(set="moderate")
    (table,) = layouts(given, printed("stardtox"), paper("stardtox"))
    assert list(table.view().columns) == ["method", "toxicity", "coherence", "fluency", "relevance"]
    first = table.view().iloc[0]
    assert first["toxicity"].startswith("10.")
    assert first["toxicity"].endswith("paper 12.09")
    assert first["coherence"] == "–\npaper 95.65"


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize("change", [without_effect, scaled(0.5)])
def test_few_pages_replicate_what_is_not_true(name, change):
    assert falsely(name, change, verdicts(name, change, range(3), clusters=40)) < 1
