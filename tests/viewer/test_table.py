"""Filters, counts, flips and search, as the page answers them, compared with plain SQL or with known values."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from parley.agents import Transcript
from parley.judging import Outcome, Study, Unit, Verdict
from parley.judging.bbq.study import BbqStudy
from parley.judging.malibu.study import Malibu
from parley.judging.rldf.study import Rldf
from parley.judging.squad.study import SquadStudy
from parley.runs import Record, RunFile
from parley.runs.reading import template_fields
from parley.runs.studies import facets_of, measures_of
from parley.viewer.figures import PANEL, VerdictRow, unit_figures
from parley.viewer.index import SearchIndex, fts_query
from parley.viewer.open_run import OpenRun


@pytest.fixture(scope="module")
def ask(shared_viewer, chromium):
    """Evaluates an expression about the `table` of a run: `page`, `ids` and `counts` answer the query of an address."""
    script = """async (run) => {
      const { searched, unitsOf } = await import("/static/units.js");
      const table = await unitsOf(run, true);
      const page = async (query) => {
        const params = new URLSearchParams(query);
        return table.page(params, await searched(run, params));
      };
      const ids = async (query) => (await page(query)).rows.map(({ id }) => id);
      const counts = async (query, wanted) =>
        Object.fromEntries((await page(query)).filters.find(({ key }) => key === wanted).values);
      return %s;
    }"""
    page = chromium.new_page()
    page.goto(shared_viewer + "run?run=quick.sqlite")
    yield lambda path, expression: page.evaluate(script % expression, path.name)
    page.close()


def test_filters_and_counts_match_sql(malibu, ask):
    both = ask(malibu, "await ids('f.phase=1&f.identity=female&sort=position')")
    others = ask(malibu, "await counts('f.phase=1&f.identity=female', 'f.identity')")
    with closing(sqlite3.connect(malibu)) as db:
        phase, identity = "json_extract(facets, '$.phase')", "json_extract(facets, '$.identity')"
        rows = db.execute(
            f"SELECT id FROM units WHERE {phase} = 1 AND {identity} = 'female' ORDER BY position"
        ).fetchall()
        counted = dict(db.execute(f"SELECT {identity}, count(*) FROM units WHERE {phase} = 1 GROUP BY 1"))
    assert both == [row[0] for row in rows]
    assert others == counted, "a filter's counts ignore its own selection"


def test_scores_are_the_last_rounds_mean_and_missing_ones_sort_last(malibu, ask, shelf, build):
    scores = ask(malibu, "(await page('sort=score&desc=1')).rows.map(({ score }) => score)")
    with closing(sqlite3.connect(malibu)) as db:
        rows = db.execute(
            "SELECT unit, avg(value) FROM verdicts WHERE round = 2 GROUP BY unit ORDER BY 2 DESC"
        ).fetchall()
    assert scores == pytest.approx([value for _, value in rows])
    refused = build.JudgeReply("One", "A", "I would rather not.", "refused")
    path = build.write_run(
        shelf / "missing.sqlite",
        [build.pair_unit(build.pair(1, 0), [refused]), build.judged(2)],
        planned=[build.pair(0, 0)],
    )
    for query in ("sort=score", "sort=score&desc=1"):
        found = ask(path, f"(await page('{query}')).rows.map(({{ score, parse, status }}) => [score, parse, status])")
        assert found == [[6, "ok", "done"], [None, "refused", "done"], [None, None, "planned"]]
    assert ask(path, "await ids('low=0')") == ["p2/s2/o0"], "a range leaves out units without a score"


def test_a_verdict_that_depends_on_the_order_is_flipped(flips, ask):
    by_judge = ask(flips, "['Three', 'One', ''].map((judge) => table.by(judge).flip)")
    assert by_judge[0] == ["flipped", "flipped", "consistent", "consistent"]
    assert by_judge[1] == ["consistent"] * 4
    panel = ["tie in one order", "tie in one order", "consistent", "consistent"]
    assert by_judge[2] == panel, "one A and one B is a tie"


def test_search_supports_phrases_prefixes_and_excluded_words(shelf, build, ask):
    texts = {1: "The café was clear and calm.", 2: "Calm and clear, it was.", 3: "Nothing of the kind."}
    records = [build.judged(n, text=text) for n, text in texts.items()]
    run = build.write_run(shelf / "words.sqlite", records)
    queries = {
        "clear calm": [1, 2],
        '"clear and calm"': [1],
        "cal*": [1, 2],
        "clear -cafe": [2],  # accents do not matter
        "answered": [],  # prompts are not searched
        "answered&prompts=1": [1, 2, 3],
        "nowhere": [],
    }
    found = ask(run, f"await Promise.all({json.dumps([f'q={query}' for query in queries])}.map(ids))")
    assert found == [[f"p2/s{n}/o0" for n in numbers] for numbers in queries.values()]


def test_the_index_grows_with_the_run_and_is_cleared_for_another_run_at_the_same_path(tmp_path, build):
    path = tmp_path / "grows.sqlite"
    build.write_run(path, [build.judged(1)], planned=[build.pair(2, 0)])
    assert sum(SearchIndex(path).update()) == 1
    with RunFile.open(path, write=True) as file:
        file.write([build.judged(2, text="marmalade")])
    index = SearchIndex(path)
    last, _ = index.rows()
    assert sum(index.update()) == 1
    assert [row[0] for row in json.loads(index.rows(last)[1])] == [1], "only new units"
    assert index.search("marmalade", include_prompts=False) == [1]
    path.unlink()
    build.write_run(path, [build.judged(1)])
    fresh = SearchIndex(path)
    assert list(fresh.update())
    assert fresh.search("marmalade", include_prompts=False) == []


@pytest.mark.parametrize(
    "damage",
    [None, (b"CREATE TABLE about", b"CREATE TABL\xff about"), (b"CREATE TABLE figures", b"CREATE TABLX figures")],
)
def test_an_index_that_is_damaged_or_of_another_format_is_rebuilt(tmp_path, build, damage):
    path = tmp_path / "a.sqlite"
    build.write_run(path, [build.judged(1, text="marmalade")])
    old = SearchIndex(path)
    assert list(old.update())
    with closing(sqlite3.connect(old.path)) as db:
        db.execute("PRAGMA journal_mode = DELETE" if damage else "PRAGMA user_version = 0")
    if damage:
        old.path.write_bytes(old.path.read_bytes().replace(*damage))
    new = SearchIndex(path)
    assert sum(new.update()) == 1
    assert new.search("marmalade", include_prompts=False) == [0]


def test_identities_are_matched_by_all_facets_they_do_not_determine(shelf, build, ask):
    def unit(identity, category, scenario):
        return Unit(f"{identity}/{scenario}", {"identity": identity, "category": category, "scenario": scenario})

    rows = (("female", "gender", "s1"), ("black", "race", "s1"), ("black", "race", "s2"), ("", "", "s1"))
    units = [unit(*row) for row in rows]
    path = build.write_run(shelf / "matched.sqlite", [], planned=units)
    assert ask(path, "[['black'], ['nobody']].map(([y]) => table.pairsBy('identity', 'female', y))") == [[[0, 1]], []]


def verdict(metric, value, text=None, *, judge="Referee", role="referee", round=1):
    return VerdictRow(judge=judge, role=role, round=round, subject="", value=value, text=text, metric=metric)


def said(value, text=None, *, judge="One", role="debater", round=1, metric="x"):
    return verdict(metric, value, text, judge=judge, role=role, round=round)


DEBATE = [
    *(verdict("bias", value, round=number) for number, value in ((1, 8.0), (1, 8.0), (2, 4.0), (2, 2.0))),
    *(verdict("rank", 1.0, round=2), verdict("discordant", 1.0, "One (8) and Two (8)", round=2)),
    verdict("echo", 1.0, judge="rules", role="coordinator", round=2),
]
LOOP = [verdict("bias", 7.0, judge="Judge", role="evaluator", round=0), verdict("first_answer", 2.0, "Not known")]
CHAIRED = [said(2.0), said(4.0, round=2), said(9.0, judge="Chair", role="chair", round=2)]
TOXIC = said(0.9, "rude", judge="words 1", role="evaluator", metric="toxicity")
SEPARATE = {PANEL: (None, None), "words 1": (0.9, None), "performance": (80.0, None)}
FLUENT = said(80.0, "fine", judge="performance", role="evaluator", metric="fluency")
FIGURES = {
    "the chair's verdict is the panel's": (CHAIRED, (), {}, {PANEL: (9.0, None), "One": (4.0, None)}),
    "scales are not averaged, and a reason is no choice": ([TOXIC, FLUENT], (), {}, SEPARATE),
    "a debate's score is its bias, without ranks and flags": (DEBATE, Rldf.measures, {}, {PANEL: (3.0, None)}),
    **{
        f"an answer of BBQ: {value}": (
            [*LOOP, said(value, text, judge="Solver", metric="answer")],
            BbqStudy.measures,
            {"label": "1"},
            {PANEL: (value, text)},
        )
        for value, text in ((1.0, "the boy"), (0.0, "the boy"), (None, None))
    },
    **{
        f"an answer of SQuAD: {text} for {answers}": (
            [said(value, text, judge="Solver", metric="answer")],
            SquadStudy.measures,
            {"answers": answers},
            {PANEL: (right, text)},
        )
        for answers, value, text, right in (
            ('["The Normans"]', 1.0, "normans", 1.0),
            ('["1066"]', 0.0, "unanswerable", 0.0),
            ("[]", 0.0, "n/a", 1.0),
            ("[]", 1.0, "1066", 0.0),
        )
    },
    "the number of an answer is no score": ([said(2.0, "Not known", metric="")], (), {}, {PANEL: (None, "Not known")}),
}


@pytest.mark.parametrize("name", FIGURES)
def test_the_score_and_the_choice_of_a_unit(name):
    rows, measures, facets, expected = FIGURES[name]
    figures = unit_figures(rows, [("One", "ok"), ("Chair", "repaired")], measures, facets)
    assert {who: (figures[who].score, figures[who].choice) for who in expected} == expected
    if rows is CHAIRED:
        assert (figures[PANEL].parse, figures["One"].parse, figures["One"].changed) == ("repaired", "ok", True)


def test_measures_and_facets_come_from_the_run_file_or_from_the_shipped_study_of_that_name(runs):
    with RunFile.open(runs / "quick.sqlite") as file:
        stored = file.info()
    assert stored["measures"][0]["label"] == "score"
    for read, name in ((measures_of, "measures"), (facets_of, "facets")):
        own = getattr(Malibu, name)
        assert read(stored) == own
        assert read({**stored, "study": "mine"}) == own, "no code of a user's own study is loaded"
        assert read({"study": "rldf"}) == getattr(Rldf, name), "the shipped example stores none"
        lies = {"study": "rldf", name: [{"metric": "x", "name": "x", "label": "y", "kind": "lies"}]}
        assert read(lies) == getattr(Study, name)


def test_template_fields_are_found_in_a_prompt():
    template = 'Situation: {scenario}\n{candidate}\n"{response}"\nReport {{"x": 1}}'
    text = template.format(scenario="A fire.", candidate="Candidate (black):", response="Call for help.")
    fields = template_fields(text, ["Something else: {x}", template])
    assert fields == {"scenario": "A fire.", "candidate": "Candidate (black):", "response": "Call for help."}
    assert template_fields("no such prompt", [template]) == {}
    rubric = json.dumps({"about": "a rubric, stored among the prompts and longer than the template " * 3})
    assert template_fields(text, [rubric, template]) == fields, "JSON is not a template"

    assert fts_query("-a -b") == ""


def test_an_identity_finds_the_pairs_of_either_candidate(shelf, build, ask):
    single = Unit("p1/s1/white", {"phase": 1, "scenario": "s1", "identity": "white"})
    path = build.write_run(shelf / "either.sqlite", [], planned=[build.pair(1, 0), build.pair(1, 1), single])
    found = ask(path, "await Promise.all(['f.identity=white', 'f.identity=white&f.phase=1'].map(ids))")
    assert [len(ids) for ids in found] == [3, 1], (
        "two pairs in which white is the other candidate, and one single answer"
    )
    assert ask(path, "await counts('f.identity=white', 'f.identity')") == {"black": 2, "white": 3}


def test_answers_are_filtered_by_right_wrong_stereotyped_unknown_and_unparsed(shelf, build, ask):
    def answered(number, value):
        facets = {"label": 0, "target": 1, "unknown": 0} if number < 4 else {"label": 1, "target": 1, "unknown": 0}
        status = "unparsed" if value is None else "ok"
        verdict = Verdict(judge="Solver", role="debater", round=1, metric="answer", value=value, status=status)
        outcome = Outcome(Transcript((), "answered"), (verdict,))
        return Record(unit=Unit(f"q{number}", facets), started_at=1.0, finished_at=2.0, outcome=outcome)

    records = [answered(number, value) for number, value in enumerate((0.0, 1.0, 2.0, None, 1.0))]
    planned = [Unit("q9", {"label": 0, "target": 1, "unknown": 0})]
    path = build.write_run(shelf / "answers.sqlite", records, planned=planned, study="bbq")
    kinds = ask(path, "table.answers.labels")
    found = ask(path, f"await Promise.all({kinds}.map((kind) => ids(`d.answer=${{kind}}`)))")
    assert dict(zip(kinds, found, strict=True)) == {
        "right": ["q0", "q4"],
        "wrong": ["q1", "q2"],
        "stereotyped": ["q1", "q4"],
        "unknown": ["q0"],
        "unparsed": ["q3"],
    }


def test_a_page_that_has_a_run_gets_only_what_is_new_and_a_new_run_as_a_whole(tmp_path, build):
    path = tmp_path / "a.sqlite"
    units = [build.judged(1), build.judged(2)]
    build.write_run(path, units[:1], planned=[units[1].unit])
    run = OpenRun(path)
    first = json.loads(run.units("", 0))
    assert (first["ids"], first["status"], len(first["figures"])) == (["p2/s1/o0", "p2/s2/o0"], "dp", 1)
    with RunFile.open(path, write=True) as file:
        file.write(units[1:])
    new = json.loads(run.units(first["plan"], first["after"]))
    assert ("ids" not in new, new["status"], [row[0] for row in new["figures"]]) == (True, "dd", [1])
    assert len(json.loads(run.units("another plan", first["after"]))["figures"]) == 2
    run.close()
