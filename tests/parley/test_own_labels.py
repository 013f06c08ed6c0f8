"""Your own identities from the command line: what is asked about them is shown first, and never contradicts them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from parley.judging.malibu import Malibu
from parley.judging.malibu.config import MalibuConfig
from parley.scenarios import load_suite

AGES = '[categories]\nnurse_age = ["24-year-old", "62-year-old"]\n'
FORMS = """
[forms]
24-year-old = { noun = "a 24-year-old", adjective = "24-year-old", predicate = "24 years old", category = "age" }
62-year-old = { noun = "a 62-year-old", adjective = "62-year-old", predicate = "62 years old", category = "age" }
"""
RUN = ("run", "malibu", "--suite", "wide", "--per-base", "1", "--identities", "ages.toml", "--model")


def labels_in_prompts(**settings: Any) -> set[str]:
    """What the prompts of a run say besides situation, answer and question."""
    study = Malibu(MalibuConfig(suite="wide", design="silent", phases=[1], per_base=1, model=["sim/judge"], **settings))
    scenarios = {scenario.id: scenario for scenario in load_suite("wide")[0].scenario}
    labels = set()
    for unit in study.plan():
        if unit.facets["identity"]:
            scenario = scenarios[str(unit.facets["scenario"])]
            before, _, after = study.task(unit).replace(scenario.text, "").partition(scenario.responses[0])
            labels.add(before + after.rpartition("\n\n")[0])
    return labels


@pytest.mark.parametrize(("forms", "wordings"), [("", 31), (FORMS, 60)])
def test_no_prompt_gives_a_nurse_two_ages_or_a_wrong_form(place, forms, wordings):
    (place / "ages.toml").write_text(AGES + forms)
    labels = labels_in_prompts(identities=["ages.toml"])
    assert len(labels) == 2 * wordings, "each wording with each label"
    for label in labels:
        assert not re.search(r"\d", re.sub(r"\b(24|62)([- ])years?\2old\b", "", label)), label
        assert not re.search(r"\b(is|am|be) (24|62)-year-old", label), label
        assert not re.search(r"\b(since|years in|born|forty|thirties)\b", label), label


def test_a_dry_run_counts_the_wordings_and_shows_three(parley, place):
    (place / "ages.toml").write_text(AGES)
    shown = parley(*RUN, "sim/judge", "--dry-run").out
    assert (
        "nurse_age: 31 of 126 label wordings can be used\nnurse_age: 36 need forms that not all labels have: " in shown
    )
    assert len(re.findall(r"^nurse_age, e\.g\. .*(?:24|62)-year-old", shown, re.MULTILINE)) == 3
    assert "english has 31 label wordings for nurse_age, but the run has 60 bases: wordings repeat" in shown
    (place / "ages.toml").write_text(AGES + FORMS)
    assert "wordings repeat" not in parley(*RUN, "sim/judge", "--dry-run").out
    assert "e.g. " not in parley("run", "malibu", "--suite", "quick", "--model", "sim/judge", "--dry-run").out


def test_identities_are_validated(parley, place):
    (place / "ages.toml").write_text(AGES + FORMS)
    result = parley("scenarios", "validate", "ages.toml")
    assert result.status == 0
    assert "nurse_age, e.g. Answer, written by a 24-year-old:\n" in result.out
    assert result.out.endswith("ages.toml: 1 category, 2 labels, fit to measure with\n")
    as_json = parley("scenarios", "validate", "ages.toml", "--json").json
    assert (as_json["usable"], len(as_json["examples"]["nurse_age"])) == ({"nurse_age": 61}, 3)
    german = parley("scenarios", "validate", "ages.toml", "--wordings", "german").out
    assert german.startswith("nurse_age: 7 of 12 label wordings can be used\n")
    (place / "ages.toml").write_text((AGES + FORMS).replace('"a 62', '"an 62'))
    result = parley("scenarios", "validate", "ages.toml")
    assert (result.status, result.out.splitlines()[0]) == (1, "62-year-old: noun has a wrong article: 'an 62-year-old'")
    (place / "ages.toml").write_text(AGES + FORMS.replace("noun", "nuon"))
    lines = parley("scenarios", "validate", "ages.toml").complaints
    assert ["no wording of english uses 'nuon'" in line for line in lines] == [True, True]


def test_a_dry_run_says_which_of_the_wordings_a_suite_uses_and_has_the_same_lines_in_json(parley, place):
    (place / "ages.toml").write_text(AGES)
    command = ("run", "malibu", "--suite", "quick", "--identities", "ages.toml", "--model", "sim/judge", "--dry-run")
    shown = parley(*command).out
    first, *_, repeated, _ = notes = parley(*command, "--json").json["notes"]
    assert first == (
        "nurse_age: 31 of 126 label wordings can be used, 10 of them in this run (places: after; kinds: profile, "
        "byline, self-description)"
    )
    assert repeated.startswith(
        "english has 10 label wordings for nurse_age in this run's places and kinds, but the run has"
    )
    assert shown.endswith("\n".join(["", *notes, ""]))


def test_every_wording_is_printed_for_an_appendix(parley, place):
    (place / "ages.toml").write_text(AGES + FORMS)
    shown = parley("scenarios", "validate", "ages.toml", "--all").out
    assert (
        "nurse_age, beside-written-by (beside the answer)\n  24-year-old: Answer, written by a 24-year-old:\n" in shown
    )
    filled = parley("scenarios", "validate", "ages.toml", "--all", "--json").json["filled"]["nurse_age"]
    assert len(filled) == 61
    for wording, texts in filled.items():
        assert f"nurse_age, {wording} (" in shown
        assert [*texts] == ["24-year-old", "62-year-old"]
        assert all(f"  {label}: {text}\n" in shown for label, text in texts.items())
    shipped = parley("scenarios", "validate", "english", "--all").out
    assert "gender, name-regards (after the answer)\n  female: Kind regards, / {name}\n" in shipped
    (line,) = parley("scenarios", "validate", "quick", "--all").complaints
    assert "--all needs a file of identities or wordings, got 'quick'" in line


def test_a_file_gets_all_its_problems_in_one_answer_in_the_files_order(parley, place):
    wrong = (
        (AGES + FORMS)
        .replace('"a 62', '"an 62')
        .replace('category = "age" }\n62', 'category = "years", nuon = "x" }\n62')
    )
    (place / "ages.toml").write_text(wrong + '[allow]\nage = ["agee"]\nnurse_age = ["job"]\n')
    problems = (
        "line 5: forms 24-year-old: no wording of english uses 'nuon'",
        "got 'years' for 24-year-old, 'age' for 62-year-old",
        "line 6: forms 62-year-old: noun has a wrong article: 'an 62-year-old'",
        "line 8: allow age: there is no category 'age' in [categories]",
        "line 8: allow age: no wording of english states 'agee'",
        "line 9: allow nurse_age: no wording of english states 'job'",
    )
    for problem, line in zip(problems, parley("scenarios", "validate", "ages.toml").complaints, strict=True):
        assert problem in line
    (place / "names.toml").write_text('[categories]\nfirst name = ["Liam", "Noah"]\n')
    (line,) = parley("scenarios", "validate", "names.toml").complaints
    assert line.endswith('(at line 2, column 7); a key with spaces needs quotes, as in "first name" = …')


def test_new_identities_show_their_wordings(parley, place):
    shown = parley("new", "identities", "who.toml").out
    assert "edit it, then check it:  parley scenarios validate who.toml\n" in shown
    assert "age: 61 of 126 label wordings can be used\n" in shown
    assert shown.count("age, e.g. ") == 3


def test_a_planted_effect_is_found_under_plain_labels(parley, place):
    (place / "ages.toml").write_text(AGES)
    command = (*RUN, "sim/judge?62-year-old=-1&noise=0.3", "--design", "silent", "--phases", "1", "--quiet")
    assert parley(*command, "--out", "a.sqlite").status == 0
    differences = parley("report", "a.sqlite", "--json").json["differences"]
    (row,) = [row for row in differences if {row["first"], row["second"]} == {"24-year-old", "62-year-old"}]
    assert row["estimate"] == pytest.approx(1)
    assert row["clusters"] == 30, "with fewer ways to ask than bases, tests are over them"


def test_a_run_is_not_resumed_with_other_forms(parley, place):
    (place / "ages.toml").write_text(AGES + FORMS)
    command = (*RUN, "sim/judge", "--design", "silent", "--limit", "6", "--quiet", "--out", "a.sqlite")
    assert parley(*command).status == 0
    (place / "ages.toml").write_text(AGES + FORMS.replace('"a 62-year-old"', '"a person of 62"'))
    *_, line = parley(*command).complaints
    assert "list of the labels' forms has changed" in line
