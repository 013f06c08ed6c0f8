"""Your own study: written by hand or by a command, run as a file or installed, killed, resumed, reported and viewed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from parley.judging import Study
from parley.runs import RunFile
from parley.runs.studies import SHIPPED, find_comparable, find_report, find_study
from parley.viewer.reporter import headline
from tests.own_study import STUDY
from tests.parley.test_bad_input import one_line

ROOT = Path(__file__).parents[2]
DRINKS = (
    STUDY
    + '''
OPENING = "What is good about {topic}?"

class Panel(Study):
    """Ada and Ben talk about drinks."""

    name = "panel"
    # report

    class Config(Study.Config):
        topics: list[str] = ["tea", "coffee", "water"]

    def prompts(self):
        return {"opening": OPENING}

    def plan(self):
        for n, topic in enumerate(self.config.topics):
            yield Unit(topic, {"topic": topic, "nth": n})

    async def run(self, unit, models):
        if unit.id == "lava":
            raise ZeroDivisionError("nobody drinks\\nlava")
        panel = [Persona("Ada", "You are Ada."), Persona("Ben", "You are Ben.")]
        table = Debate(panel, model=self.config.model, rounds=1, models=models)
        transcript = await table.converse(OPENING.format(topic=unit.id))
        score = {"tea": 2.0, "milk": 4.0}.get(unit.id, 3.0)
        return Outcome(transcript, (Verdict.from_turn(transcript.spoken()[-1], "taste", value=score),))

def mine(verdicts, context):
    from parley.analysis.page.report import Report
    return Report(f"mine: {context.title}", (f"{len(verdicts)} verdicts",), runs=context.runs)

class Dice(Study):
    name = "dice"

    def models(self):
        return []

    def plan(self):
        yield from (Unit(f"throw-{number}", {"throw": number}) for number in range(3))

    async def run(self, unit, models):
        thrown = Verdict(judge="Dice", role="evaluator", round=1, metric="points", value=4.0)
        return Outcome(Transcript((), "thrown"), (thrown,))
'''
)
PANEL = ("run", "panel.py:Panel", "--quiet", "--concurrency", "1", "--out", "panel.sqlite")
FEW = ("--draws", "50")


@pytest.fixture
def study(place):
    path = place / "panel.py"
    path.write_text(DRINKS)
    return path


def test_it_is_run_recorded_resumed_and_shown(parley, study, run_file):
    file = run_file("panel.sqlite")
    assert parley(*PANEL, "--budget-calls", "5").status == 1
    assert file.done() == {"tea", "coffee"}
    assert parley(*PANEL).status == 0
    assert file.count() == 3
    assert file.rows("SELECT seq, speaker, role, text FROM transcript WHERE unit = 'tea'")[0] == (
        (0, "user", "narrator", "What is good about tea?")
    )
    assert file.rows("SELECT unit, judge, metric, value FROM verdicts WHERE unit = 'tea'") == [
        ("tea", "Ben", "taste", 2.0)
    ]
    file.check()
    assert "What is good about water?" in parley("show", "panel.sqlite", "water").out
    one_line(
        parley(*PANEL[:-1], "b.sqlite", "--topics", "tea,milk,tea"), 1, "the study planned two units with the same id"
    )
    assert list(study.parent.glob("b.sqlite*")) == [], "no incomplete file is left"
    planned = parley("run", "panel.py:Dice", "--dry-run", "--json").json
    thrown = parley("run", "panel.py:Dice", "--quiet", "--json")
    assert (planned["models"], thrown.status, thrown.json["done"]) == ([], 0, 3), "a study without models runs"


def test_a_fault_in_its_code_fails_only_its_unit(parley, study, run_file):
    assert "--topics" in parley("run", "panel.py:Panel", "--help").out, "its fields are flags"
    result = parley(*PANEL, "--topics", "tea,lava,milk")
    assert result.status == 1
    assert result.complaints == ["parley: 1 unit failed with: ZeroDivisionError: nobody drinks lava"]
    assert "Traceback" not in result.err
    assert run_file("panel.sqlite").done() == {"tea", "milk"}
    run_file("panel.sqlite").check()


def test_it_gets_the_generic_report_or_its_own(parley, study):
    assert parley(*PANEL, "--topics", "tea,milk").status == 0
    data = parley("report", "panel.sqlite", "--json", "--out", "deep/er", *FEW).json
    assert Path("deep/er/report.html").exists(), "with --json, files only if --out is given"
    assert not Path("panel-report").exists()
    (row,) = data["means"]
    assert (row["metric"], row["estimate"], row["n"], row["clusters"]) == ("taste", 3.0, 2, 2)
    assert [row["low"], row["high"]] == pytest.approx([3 - 12.706, 3 + 12.706], abs=1e-3), "t of 2 scores, 2 and 4"
    study.write_text(DRINKS.replace("# report", "report = staticmethod(lambda *given: mine(*given))"))
    own = ("--study", "panel.py:Panel")
    mine = parley("report", "panel.sqlite", *own, "--json", *FEW).json
    assert (mine["title"].startswith("mine: panel"), mine["summary"]) == (True, ["2 verdicts"])
    study.unlink()
    assert parley("report", "panel.sqlite", "--json", *FEW).json == data, "the run can be read without the study"


@pytest.mark.parametrize("name", SHIPPED)
def test_what_a_shipped_study_is_stands_on_its_class(name):
    study = find_study(name)
    assert (study.name, issubclass(study, Study), callable(find_report(name))) == (name, True, True)
    assert study.comparable == "" or callable(find_comparable(name))


def code_lines(text: str) -> int:
    """The number of lines that are not empty, comments or one-line docstrings."""
    lines = [line.strip() for line in text.split('"""', 2)[2].splitlines()]
    return sum(bool(line) and not line.startswith(("#", '"""')) for line in lines)


def test_a_new_study_is_forty_lines_and_runs_from_its_file(parley, place):
    created = parley("new", "study", "warm-letters", "--to", "mine")
    assert created.status == 0, created.err
    study = place / "mine" / "warm-letters" / "warm_letters" / "study.py"
    assert code_lines(study.read_text()) <= 40
    command = ("run", f"{study}:WarmLetters", "--model", "sim/judge")
    run = parley(*command, "--json", "--quiet")
    with RunFile.open(Path(run.json["run"])) as file:
        seen = headline(file)
    (line,) = seen["forests"][0]["lines"]
    assert (line["label"], line["p_adjusted"]) == ("Ada − Ben", 1.0), "two letters show nothing"
    assert seen["headline"]["verdict"] == "not measured", "nor do they have an interval"
    made = parley("report", run.json["run"], "--study", f"{study}:WarmLetters", "--json", *FEW).json
    assert made["headline"]["question"] == "Does a name change how warm a letter sounds?", "report.py stands beside it"
    assert [row["estimate"] for row in made["unread"]] == [0.0, 0.0]
    readme = study.parents[1] / "README.md"
    readme.write_text("my own words")
    one_line(parley("new", "study", "warm-letters", "--to", "mine"), 2, "already exists")
    assert readme.read_text() == "my own words"
    study.with_name("ask.txt").unlink()
    one_line(parley(*command), 2, "ask.txt: No such file or directory")


def test_its_own_test_passes(parley):
    parley("new", "study", "warm-letters")
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    environment = {**os.environ, "PYTHONPATH": f"{Path('warm-letters').resolve()}{os.pathsep}{ROOT}"}
    done = subprocess.run(tests, cwd="warm-letters", env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "2 passed" in done.stdout) == (0, True), done.stdout
