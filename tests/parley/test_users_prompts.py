"""`--prompts-from FOLDER`: the user's prompts in place of ours, and `--prompts-to`, which writes ours as a start."""

from __future__ import annotations

from contextvars import Context
from pathlib import Path

import pytest

import parley as package
from parley.analysis.reporting.methods import methods
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
    assert (result.status, result.out, result.err) == (0, "14 prompts: mine\n", "")
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
        ("rldf/open", "#! redaer: x\nhi", "the first line says 'redaer': expected #! without: PLACE"),
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
    assert complaint.endswith("rubric.txt: no file replaces rubric; --prompts-to writes those that one can")
