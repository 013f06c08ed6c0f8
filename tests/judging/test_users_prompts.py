"""`--prompts-from FOLDER`: the user's prompts in place of ours, and `--prompts-to`, which writes ours as a start."""

from __future__ import annotations

from contextvars import Context
from pathlib import Path

import pytest
from pydantic import create_model

import parley as package
from parley.agents import scale
from parley.analysis.page.methods import methods
from parley.judging.readers import read_by
from parley.judging.rldf.referee import report_type
from parley.reports.making import make_report
from parley.runs.executors.worker import StudySpec
from parley.runs.job import Job
from parley.runs.options import Options

SETTINGS = {"design": "paper", "model": "sim/debate", "topics": 2, "rounds": 2}
RLDF = ("run", "rldf", *(word for key, value in SETTINGS.items() for word in (f"--{key}", value)))
OPEN = "#! without: roster, words\nA talk about {topic}\n"


@pytest.fixture
def mine(place: Path) -> Path:
    """A folder with a prompt for RLDF."""
    (place / "mine" / "rldf").mkdir(parents=True)
    (place / "mine" / "rldf" / "open.txt").write_text(OPEN)
    return place / "mine"


def openings(run) -> set[str]:
    """The first lines of the conversations."""
    return {text.splitlines()[0] for (text,) in run.rows("SELECT text FROM transcript WHERE role = 'narrator'")}


def test_ours_are_written_edited_and_used(parley, run_file):
    result = parley(*RLDF, "--prompts-to", "mine")
    assert (result.status, result.out, result.err) == (0, "16 prompts: mine\n", "")
    assert not Path("runs").exists(), "nothing was run"
    assert parley(*RLDF, "--prompts-to", "mine").complaints == ["parley: mine already exists; choose another name"]
    for name in ("rldf/open", "persona/Sixty"):
        file = Path("mine", f"{name}.txt")
        file.write_text(f"Changed. {file.read_text('utf-8')}")
    assert parley(*RLDF, "--prompts-from", "mine", "--out", "a.sqlite", "--quiet").status == 0
    run = run_file("a.sqlite")
    assert {line.split()[0] for line in openings(run)} >= {"Changed."}
    stored = dict(run.rows("SELECT name, text FROM prompts"))
    assert [name for name, text in stored.items() if text.startswith("Changed.")] == ["persona/Sixty", "rldf/open"]
    spoken = run.rows("SELECT DISTINCT p.text FROM messages m JOIN texts p ON p.id = m.persona WHERE speaker = 'Sixty'")
    assert [text.split()[0] for (text,) in spoken] == ["Changed."]
    (sentence,) = [text for text in methods(make_report([Path("a.sqlite")])) if "of our own" in text]
    assert "We put prompts of our own in place of Parley's: persona/Sixty, rldf/open." in sentence


def test_a_run_resumes_with_its_own_prompts_only(parley, mine, run_file):
    flags = ("--out", "a.sqlite", "--quiet")
    assert parley(*RLDF, "--prompts-from", mine, *flags).status == 0
    (complaint,) = parley(*RLDF, *flags).complaints
    assert "a.sqlite contains a different run (prompt rldf/open has changed)" in complaint
    assert parley(*RLDF, "--prompts-from", mine, *flags).status == 0
    assert {line.startswith("A talk about ") for line in openings(run_file("a.sqlite")) if "talk" in line} == {True}


def test_one_run_s_prompts_are_not_the_next_one_s(mine, run_file):
    package.run("rldf", options=Options(prompts_from=str(mine), out="a.sqlite"), **SETTINGS)
    package.run("rldf", out="b.sqlite", **SETTINGS)
    talks = [
        any(line.startswith("A talk about ") for line in openings(run_file(name))) for name in ("a.sqlite", "b.sqlite")
    ]
    assert talks == [True, False]


def test_a_job_keeps_its_prompts_when_another_is_made_before_it_runs(mine):
    job = Job.make("rldf", SETTINGS, Options(prompts_from=str(mine)))
    Job.make("rldf", SETTINGS, Options())
    assert job.users_prompts["rldf/open"].text == "A talk about {topic}"


def test_a_worker_makes_the_study_with_the_same_prompts(mine):
    def specify() -> StudySpec:
        return StudySpec.of(Job.make("rldf", SETTINGS, Options(prompts_from=str(mine))).study, "rldf")

    spec = Context().run(specify)
    study = Context().run(spec.make)
    assert study.prompts()["rldf/persona"] != "", "the worker refuses a study with another fingerprint"


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("rldf/opne", "hi", "rldf has no prompt 'rldf/opne'; did you mean 'rldf/open'?"),
        ("rldf/open", "{topc} {roster} {words} {topic}", "nothing fills in {topc} (known: roster, topic, words)"),
        ("rldf/open", "{roster} {words}", "{topic} is missing; a first line '#! without: topic' leaves it out"),
        ("rldf/statements", "{topic} {statements} {", "a brace stands alone; write {{ and }} where they"),
        ("rldf/open", "#! redaer: x\nhi", "the first line says 'redaer': expected #! reader: NAME; without: PLACE"),
        ("persona/Twenty", "{label}", "nothing fills in {label}"),
    ],
)
def test_what_is_wrong_with_a_prompt_is_said_in_a_line(parley, mine, name, text, problem):
    (mine / "rldf" / "open.txt").unlink()
    path = mine / f"{name}.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    result = parley(*RLDF, "--prompts-from", "mine")
    assert result.status == 2
    assert [line.removeprefix(f"parley: mine/{name}.txt: ")[: len(problem)] for line in result.complaints] == [problem]


def test_a_text_that_is_no_file_s_is_refused_and_so_is_an_empty_folder(parley, place):
    assert parley(*RLDF, "--prompts-from", "none").complaints == [
        "parley: none has no prompts: parley run rldf --prompts-to none writes ours"
    ]
    rubric = place / "mine" / "rubric.txt"
    rubric.parent.mkdir()
    rubric.write_text("Be fair.")
    panel = ("run", "malibu", "--design", "paper", "--suite", "tiny", "--model", "sim/judge")
    (complaint,) = parley(*panel, "--prompts-from", "mine").complaints
    assert complaint.endswith("rubric.txt: rubric cannot be replaced; --prompts-to writes the prompts that can")


NAMES = ("Sixty", "Twenty")
REPORT = report_type(NAMES, False)


@pytest.mark.parametrize(
    "text",
    [
        "Sixty: score 3, rank 2\nTwenty: score 5/10, rank No. 1",
        "**No.1: Twenty** (score: 5)\nRank 2: Sixty (score: 3 out of 10)",
        "Scores:\n- Sixty: 3\n- Twenty: 5\n\nRanks:\n1. Twenty: 1\n2. Sixty: 2",
        "Round 2 is over.\n\nSixty:\nScore: 3\nRank: 2\n\nTwenty\nScore: 5\nRank: 1\n",
        "(score: 3, rank: 2)\n(score: 5, rank: 1)",
        "In order:\n\n1. Score 3, rank 2\n2. Score 5, rank 1",
    ],
)
def test_lines_that_say_what_they_are_about_are_read(text):
    value, problem = read_by("lines", REPORT).read(text)
    assert (value.model_dump(), problem) == ({"scores": {"Sixty": 3, "Twenty": 5}}, "")
    assert isinstance(value, REPORT)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Sixty: score 3, score 4, rank 2\nTwenty: score 5, rank 1", "scores.Sixty: Input should be a valid number"),
        ("Sixty: score 13, rank 2\nTwenty: score 5, rank 1", "scores.Sixty: Input should be less than or equal to 10"),
        ("Round 2: I rank Sixty and Twenty alike.", "scores.Sixty: Input should be a valid number"),
        ("Score 3, rank 2", "scores.Sixty: Input should be a valid number"),
        ("Twenty: score 5, rank 1\nScore 3, rank 2", "scores.Sixty: Input should be a valid number"),
        (
            "Sixty was fairer than Twenty in all that was said so far.\nScore: 3",
            "scores.Sixty: Input should be a valid number",
        ),
    ],
)
def test_what_is_not_certain_is_not_read(text, problem):
    assert read_by("lines", REPORT).read(text) == (None, problem)


def test_a_field_for_text_gets_the_whole_reply():
    value, _ = read_by("lines", create_model("Reply", Overall=(scale(0, 10), ...), remark=(str, ...))).read(
        "Overall: 7, dull."
    )
    assert value.model_dump() == {"Overall": 7, "remark": "Overall: 7, dull."}


REFEREE = "#! reader: {}; without: format, names, round, trait\nScore and rank them in plain lines."


@pytest.fixture
def paper(mine, speaker):
    """RLDF with a referee who answers in lines, and a reader; `wrong` of each 20 reports are not in lines."""
    speaker.says = lambda body: "Sixty: score 3, rank 2\nTwenty: score 5, rank 1"
    (mine / "rldf" / "open.txt").unlink()

    def flags(reader: str = "lines") -> tuple[object, ...]:
        (mine / "rldf" / "referee.txt").write_text(REFEREE.format(reader))
        more = ("--model", speaker.model(), "--roles", 2, "--topics", 7, "--rounds", 4, "--no-check", "--no-cache")
        return ("run", "rldf", "--design", "paper", *more, "--prompts-from", mine, "--out", "a.sqlite", "--quiet")

    return flags


def test_replies_in_another_form_are_read_as_scores(parley, paper, run_file):
    assert parley(*paper()).status == 0
    run = run_file("a.sqlite")
    bias = "SELECT subject, value, count(*) FROM verdicts WHERE metric = 'bias' AND judge = 'Referee' GROUP BY 1, 2"
    assert run.rows(bias) == [("Sixty", 3, 28), ("Twenty", 5, 28)]
    assert run.one("SELECT text FROM prompts WHERE name = 'reader of rldf/referee'") == "lines"


def test_a_reader_of_one_s_own(parley, paper, place):
    body = "first, second = text.splitlines()\n    scores = {'Sixty': int(first[13]), 'Twenty': int(second[14])}"
    (place / "my.py").write_text(
        f"def read(text, reply):\n    {body}\n    return {{'scores': scores, 'ranks': {{'Sixty': 2, 'Twenty': 1}}}}\n"
    )
    assert parley(*paper("my.py:read")).status == 0


def test_twenty_replies_are_tried_and_shown_if_too_few_are_read(parley, paper, speaker, run_file):
    speaker.says = lambda body: "They were all quite fair."
    result = parley(*paper())
    assert result.status == 1
    shown = [line for line in result.complaints if "They were all quite fair." in line]
    assert shown == ["parley: Referee, unparsed: They were all quite fair."] * 20
    assert result.complaints[-1].startswith("parley: stopped: 0 of the first 20 replies to your prompts could be read")
    assert run_file("a.sqlite").count() == 5, "of 7 debates with 4 reports each"
    speaker.says = lambda body: "Sixty: score 3, rank 2\nTwenty: score 5, rank 1"
    assert parley(*paper()).status == 0, "the same command goes on all the same"
    assert run_file("a.sqlite").count() == 7


def test_an_unknown_reader_is_a_line(parley, paper):
    (complaint,) = parley(*paper("liens")).complaints
    assert "mine/rldf/referee.txt: unknown reader 'liens' (did you mean lines?" in complaint


def test_an_empty_prompt_says_nothing(parley, mine, run_file):
    (mine / "rldf" / "again.txt").write_text("")
    assert parley(*RLDF, "--prompts-from", mine, "--out", "a.sqlite", "--quiet").status == 0
    said = run_file("a.sqlite").rows("SELECT DISTINCT t.text FROM texts t WHERE t.text LIKE 'Round %'")
    assert said == []
