"""People score a run's texts: what the CSV file shows and hides, and how far people and judges agree."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import parley as product
from parley.agents import ConfigError
from parley.judging import Labelled
from parley.runs import RunFile
from tests.analysis.test_known_values import ANXIETY_2, ANXIETY_3, C_DATA, WIKIPEDIA, listed
from tests.own_study import STUDY

LETTERS = f"""
from parley.agents import Turn
from parley.agents.fencing import fence_judged
from parley.judging import Labelled

SCORES = {ANXIETY_3}
ASK = "Rate this letter to {{name}} from 1 to 5:\\n{{letter}}"

class Letters(Study):
    name = "letters"
    labelled = (Labelled(("letter",), ("warmth",), "warmth: how warm is a {{tone}} letter to {{identity}}?"),)

    def prompts(self):
        return {{"ask": ASK}}

    def plan(self):
        for number in range(len(SCORES)):
            yield Unit(f"ada{{number}}", {{"identity": "Ada", "tone": "formal", "number": number}})

    async def run(self, unit, models):
        letter = fence_judged(f"=Dear Ada,\\n> welcome to {{unit.facets['number']}}.", "LETTER")
        asked = ASK.format(name="Ada", letter=letter)
        turns = (Turn("user", "narrator", 0, asked), Turn("Host", "debater", 1, "I say."))
        value = float(SCORES[unit.facets["number"]])
        return Outcome(Transcript(turns, "rated"), (Verdict.from_turn(turns[1], "warmth", value=value),))
"""
FILE = "texts.csv"


def rows_of(path: str = FILE) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fill(path: str, columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> str:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    return path


def exported(parley, run: str, *flags: object) -> list[dict[str, str]]:
    result = parley("export", run, "--format", "csv", "--to", FILE, "--force", *flags)
    assert (result.status, result.out) == (0, f"written to {FILE}\n"), result.err
    return rows_of()


@pytest.fixture
def letters(parley) -> list[dict[str, str]]:
    """The rows of a study of one's own in the order of its plan; the run file alone says what people score."""
    Path("letters.py").write_text(STUDY + LETTERS, "utf-8")
    assert parley("run", "letters.py:Letters", "--model", "sim/talk", "--quiet", "--out", "l.sqlite").status == 0
    Path("letters.py").unlink()
    rows = exported(parley, "l.sqlite")
    return sorted(rows, key=lambda row: int(re.findall(r"\d+", row["text"])[0]))


def test_a_study_of_ones_own_shows_people_its_own_text_and_question(letters):
    first = letters[0]
    assert list(first) == ["item", "task", "text", "question", "rater", "warmth"]
    assert first["text"] == "'=Dear ▇▇▇▇,\n> welcome to 0.", "without its fence, and no spreadsheet runs it"
    assert first["question"] == "warmth: how warm is a formal letter to ▇▇▇▇?"
    assert first["rater"] == first["warmth"] == ""
    with pytest.raises(ConfigError, match=r"Labelled shows draft, .*, or fields such as \('letter',\), not 'letter'"):
        Labelled("letter")  # type: ignore[arg-type]


def test_rows_are_in_a_seeded_random_order_and_items_are_known_again(parley, letters):
    first, again = rows_of(), exported(parley, "l.sqlite")
    assert first == again
    other = exported(parley, "l.sqlite", "--seed", 1)
    assert [row["item"] for row in other] != [row["item"] for row in first] != [row["item"] for row in letters]
    assert {row["item"] for row in other} == {row["item"] for row in first}
    assert len({row["item"] for row in first}) == len(ANXIETY_3)


def test_the_report_has_the_coefficients_of_the_textbooks(parley, letters):
    """Fleiss' κ of Wikipedia's example, Krippendorff's α of data C, quadratic κ as defined on irr's `anxiety`."""

    def table(ratings: Iterable[Iterable[Any]], name: str) -> dict[tuple[str, str], dict[str, Any]]:
        filled = [
            {"item": letters[number]["item"], "rater": f"r{rater}", "warmth": "" if value != value else value}
            for number, row in enumerate(ratings)
            for rater, value in enumerate(row)
        ]
        fill(name, ("item", "rater", "warmth"), filled)
        report = parley("report", "l.sqlite", "--labels", name, "--json").json
        return {(row["between"], row["measure"]): row for row in report["labels"]}

    wikipedia = table(listed(WIKIPEDIA), "w.csv")
    assert wikipedia["people", "Fleiss' κ"]["estimate"] == pytest.approx(0.210, abs=5e-4)
    assert (wikipedia["people", "Fleiss' κ"]["n"], wikipedia["people", "Fleiss' κ"]["texts"]) == (140, 10)
    data_c = table(C_DATA, "c.csv")
    assert data_c["people", "Krippendorff's α"]["estimate"] == pytest.approx(0.849, abs=5e-4)
    anxiety = table([[score] for score in ANXIETY_2], "a.csv")
    assert {between for between, _ in anxiety} == {"people and judges", "r0 and judges"}
    kappa = anxiety["r0 and judges", "weighted κ"]
    gaps = np.subtract.outer(ANXIETY_2, ANXIETY_3).astype(float) ** 2  # 5 never occurs: 4 and 6 are two steps apart
    assert kappa["estimate"] == pytest.approx(1 - gaps.diagonal().mean() / gaps.mean())
    assert kappa["difference"] == pytest.approx(sum(ANXIETY_3) / 20 - sum(ANXIETY_2) / 20)


def test_a_file_for_each_rater_gives_one_table_and_a_sentence(parley, letters):
    for name, shift in (("ada", 0), ("ben", 1)):
        filled = [{**row, "warmth": score + shift} for row, score in zip(letters, ANXIETY_2, strict=True)]
        fill(f"{name}.csv", letters[0], filled)
    result = parley("report", "l.sqlite", "--labels", "ada.csv", "--labels", "ben.csv", "--no-files")
    assert "2 people scored 20 of 20 texts. Krippendorff's α of warmth: people 0." in " ".join(result.out.split())
    made = product.report("l.sqlite", labels=["ada.csv", "ben.csv"])
    assert set(made.table("labels")["between"]) == {"people", "people and judges", "ada and judges", "ben and judges"}
    assert "labels" not in product.report("l.sqlite").data()


def test_label_studios_name_of_the_rater_is_understood(parley, letters):
    rows = [{"item": letters[0]["item"], "annotator": name, "warmth": 3, "lead_time": 1.5} for name in ("1", "2")]
    fill("studio.csv", rows[0], rows)
    assert "1 and judges" in set(product.report("l.sqlite", labels=["studio.csv"]).table("labels")["between"])


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"item": "x"}, "texts.csv, line 2: this run has no text 'x' (column 'item')"),
        ({"warmth": "warm"}, "texts.csv, line 2: warmth must be a number, not 'warm'"),
        ({"warmth": "nan"}, "texts.csv, line 2: warmth must be a number, not 'nan'"),
        ({}, "texts.csv has no scores: fill in the columns after 'rater'"),
    ],
)
def test_what_is_wrong_with_a_file_is_named_with_its_line(parley, letters, row, problem):
    fill(FILE, ("item", "warmth"), [{"item": letters[0]["item"], "warmth": "", **row}])
    assert parley("report", "l.sqlite", "--labels", FILE).complaints == [f"parley: {problem}"]


def test_a_rater_scores_a_text_once_and_labels_are_of_one_run(parley, letters):
    fill(FILE, ("item", "warmth"), [{"item": letters[0]["item"], "warmth": 3}] * 2)
    assert "somebody scored a text twice" in parley("report", "l.sqlite", "--labels", FILE).err
    assert "--labels are of one run" in parley("report", "l.sqlite", "l.sqlite", "--labels", FILE).err
    assert "missing.csv cannot be read: No such file" in parley("report", "l.sqlite", "--labels", "missing.csv").err


def panel(parley, *flags: object) -> list[dict[str, str]]:
    """What people score of a run of MALIBU, without a word of any label or instruction."""
    settings = ("--suite", "tiny", "--identities", "gender", "--model", "sim/judge", "--quiet", "--out", "m.sqlite")
    assert parley("run", "malibu", *flags, *settings).status == 0
    rows = exported(parley, "m.sqlite")
    shown = " ".join(row["task"] + row["text"] for row in rows).lower()
    assert not re.search(r"\b(female|male|woman|man)\b|only the number|assign|as a judge|report your", shown)
    return rows


@pytest.mark.parametrize("design", ["silent", "talk", "paper"])
def test_answers_are_shown_once_without_label_or_instruction(parley, design):
    rows = panel(parley, "--design", design, "--yardstick", "off")
    singles = [row for row in rows if not row["question"].startswith("preferred")]
    pairs = [row for row in rows if row not in singles]
    assert len(singles) == 3, "one per situation: units that differ only in their label are one row"
    assert pairs
    assert all(row["text"].startswith("A:\n") and "\n\nB:\n" in row["text"] for row in pairs)
    assert all(len(row["text"]) > 200 and row["task"] for row in rows)
    wanted = "Creativity from 0 to 10; " if design == "paper" else "Overall from 1 to 9"
    assert singles[0]["question"].startswith(wanted)
    choices = [{**row, "preferred": "tie"} for row in pairs]
    fill("ada.csv", rows[0], choices)
    table = product.report("m.sqlite", labels=["ada.csv"], draws=20).table("labels")
    assert set(table["metric"]) == {"preferred"}
    fill("ada.csv", rows[0], [{**choices[0], "preferred": "C"}])
    assert "preferred must be A, tie, B, not 'C'" in parley("report", "m.sqlite", "--labels", "ada.csv").err


def test_every_statement_of_a_debate_is_a_row_without_names_and_roles(parley):
    assert parley("run", "rldf", "--model", "sim/debate", "--topics", 2, "--quiet", "--out", "r.sqlite").status == 0
    rows = exported(parley, "r.sqlite")
    with RunFile.open(Path("r.sqlite")) as file:
        said = file.rows("SELECT text FROM transcript WHERE role = 'debater'")[1]
        scores = dict(file.rows("SELECT metric, count(value) FROM verdicts GROUP BY metric")[1])
    assert len(rows) == len(set(said)) == scores["bias"]
    assert not re.search(r"\b(Sixty|Forty|Twenty)\b|year-old", " ".join(row["text"] + row["task"] for row in rows))
    assert {row["question"].partition(":")[0] for row in rows} == {"bias"}
    fill("ada.csv", rows[0], [{**row, "bias": 11} for row in rows])
    assert "bias must be 0 to 10, not '11'" in parley("report", "r.sqlite", "--labels", "ada.csv").err


def test_a_loops_accepted_draft_is_shown_and_else_the_last_reply(parley, prepared):
    for study, question in (
        ("stardtox", "toxicity from 0"),
        ("squad", "quality: how good"),
        ("framing", "biases: how"),
    ):
        rows = exported(parley, prepared / f"{study}.sqlite")
        assert rows
        assert all(row["question"].startswith(question) and row["text"] for row in rows), study
