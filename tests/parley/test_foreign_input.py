"""What others wrote: logs, data, runs and studies that are broken, odd or empty. One line, and no silent success."""

from __future__ import annotations

import copy
import io
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from parley.cli import main
from parley.runs import frames
from parley.scenarios.bbq import load as load_bbq
from tests.fuzz import seeds, workshop
from tests.fuzz.files import as_jsonl
from tests.parley.test_bad_input import one_line

Parley = Callable[..., Any]
FEW = ("--no-files", "--draws", "20")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of every study that has a report of its own, and the files they were made from."""
    folder = tmp_path_factory.mktemp("workshop")
    workshop.prepare(folder)
    return folder


def changed(run: Path, change: Callable[[dict[str, Any]], Any]) -> str:
    """A copy of a run whose units have other facets."""
    target = Path("changed.sqlite")
    shutil.copy(run, target)
    with closing(sqlite3.connect(target)) as db:
        for unit, facets in db.execute("SELECT id, facets FROM units").fetchall():
            table = json.loads(facets)
            change(table)
            db.execute("UPDATE units SET facets = ? WHERE id = ?", (json.dumps(table), unit))
        db.execute("DELETE FROM checks")  # as in a run from before checksums
        db.commit()
    return str(target)


# What was typed


def test_a_report_of_a_folder(parley: Parley) -> None:
    one_line(parley("report", "."), 2, "there is no run file .", "is a folder")


@pytest.mark.parametrize("flag", ["--tests", "--judges"])
def test_more_judges_than_there_are_people(parley: Parley, flag: str) -> None:
    one_line(parley("power", "--effect", "0.5", flag, "99999999999999999999"), 2, flag, "at most 1000000000")


def test_a_line_break_in_a_word_too_many_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list", "a", "b\nc\x1b[2J"]) == 2
    assert capsys.readouterr().err.startswith("parley: unknown arguments: b c\\x1b[2J (")


def test_bytes_that_are_no_text_are_shown_as_escapes(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a terminal hands them over: a file's name that is not UTF-8, printed to a stream that is."""
    name = "\udcff.sqlite"
    shutil.copy(prepared / "imported.sqlite", name)
    stdout = io.TextIOWrapper(io.BytesIO(), "utf-8")
    monkeypatch.setattr("sys.stdout", stdout)
    assert main(["report", name, *FEW]) == 0
    stdout.flush()
    assert b"parley show '\\udcff.sqlite'" in stdout.buffer.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise RuntimeError('boom')", ("RuntimeError: boom", "study.py, line 1")),
        ("\nraise SystemExit(3)", ("SystemExit: 3", "line 2")),
        ("x = 1 / 0", ("ZeroDivisionError",)),
        ("import nothing_of_this_name", ("nothing_of_this_name",)),
        ("def", ("invalid syntax",)),
    ],
)
def test_a_study_that_raises_when_it_is_imported(parley: Parley, code: str, words: tuple[str, ...]) -> None:
    Path("study.py").write_text(code)
    for command in (("run", "study.py:Mine"), ("report", "x.sqlite", "--study", "study.py:Mine")):
        result = parley(*command)
        if command[0] == "run":
            one_line(result, 2, "study.py cannot be loaded", *words)
        else:
            one_line(result, 2, "there is no run file x.sqlite")


# Reports of runs that are not ours


REQUIRED = {
    "malibu": ("phase", "scenario", "category", "identity"),
    "bbq": ("category", "condition", "label", "target", "unknown", "method", "scenario", "question", "example_id"),
    "squad": ("question_id", "paragraph", "answers", "search", "answerable", "repeat", "paragraph_shown"),
    "rldf": ("topic",),
    "framing": ("topic",),
    "rubric": ("item", "group"),
    "injection": ("scenario", "shown", "variant", "attempt", "kind", "ask", "repeat", "flagged"),
    "stardtox": ("set", "prompt", "completion", "method", "iterations"),
}


@pytest.mark.parametrize(("study", "facet"), [(study, facet) for study in REQUIRED for facet in REQUIRED[study]])
def test_a_report_names_the_facet_that_is_missing(parley: Parley, prepared: Path, study: str, facet: str) -> None:
    run = changed(prepared / f"{study}.sqlite", lambda facets: facets.pop(facet, None))
    one_line(parley("report", run, *FEW), 2, f"changed.sqlite cannot be reported as a run of '{study}'", facet)


ODD = ((None, [1], {"a": 1}), ("\ud800", 10**400, 1e308), ("", True, None))


@pytest.mark.parametrize("values", ODD, ids=repr)
@pytest.mark.parametrize("study", [*REQUIRED, "imported"])
def test_facets_may_be_anything(parley: Parley, prepared: Path, study: str, values: tuple[Any, ...]) -> None:
    def spoil(facets: dict[str, Any]) -> None:
        facets.update(zip(facets, values, strict=False))

    result = parley("report", changed(prepared / f"{study}.sqlite", spoil), *FEW)
    if result.status:
        one_line(result, result.status, "changed.sqlite")


def test_iterations_without_end(parley: Parley, prepared: Path) -> None:
    run = changed(prepared / "stardtox.sqlite", lambda facets: facets.update(iterations=2**31))
    one_line(parley("report", run, *FEW), 2, "2.14748e+09 iterations", "100 at most")


@pytest.mark.parametrize("value", [float("inf"), 1e308])
def test_a_score_that_nothing_can_be_computed_from(parley: Parley, prepared: Path, place: Path, value: float) -> None:
    shutil.copy(prepared / "malibu.sqlite", "far.sqlite")
    with closing(sqlite3.connect("far.sqlite")) as db:
        db.execute("UPDATE verdicts SET value = ? WHERE nth = 0", (value,))
        db.execute("DELETE FROM checks")  # as in a run from before checksums
        db.commit()
    one_line(parley("report", "far.sqlite", *FEW), 2, f"a verdict of {value:g}")


def test_markup_in_a_models_name_is_shown_as_it_is(parley: Parley, prepared: Path) -> None:
    def renamed(facets: dict[str, Any]) -> None:
        if facets["shown"] == "open":  # reports name a model where there are several
            facets["model"] = "[/bold]x[red]"

    run = changed(prepared / "injection.sqlite", renamed)
    result = parley("report", run, "--all", *FEW)
    assert (result.status, result.err) == (0, "")
    assert "[/bold]x[red]" in result.out


def test_what_no_report_expected_is_one_line_with_its_place(parley: Parley, prepared: Path) -> None:
    run = changed(prepared / "squad.sqlite", lambda facets: facets.update(answers="no JSON"))
    one_line(parley("report", run, *FEW), 1, "changed.sqlite cannot be read: JSONDecodeError", "squad/report.py, line")


@pytest.mark.parametrize(
    "command",
    [
        ("export", "changed.sqlite", "--format", "inspect", "--to", "x.json"),
        ("view", "changed.sqlite", "--export", "x.html"),
        ("compare", "changed.sqlite", "changed.sqlite"),
        ("run", "attention", "--from", "changed.sqlite"),
    ],
)
def test_other_commands_on_a_run_that_is_not_ours(parley: Parley, prepared: Path, command: tuple[str, ...]) -> None:
    shutil.copy(prepared / "framing.sqlite", "changed.sqlite")
    with closing(sqlite3.connect("changed.sqlite")) as db:
        db.execute("UPDATE run SET value = '[1, null]' WHERE key = 'models'")
        db.execute("DELETE FROM run WHERE key = 'study'")
        db.execute("UPDATE units SET facets = 'true'")
        db.execute("DELETE FROM checks")  # as in a run from before checksums
        db.commit()
    result = parley(*command)
    one_line(result, result.status, "changed.sqlite")
    assert result.status in (1, 2)


def test_a_dataset_needs_the_facets_of_debates(parley: Parley, prepared: Path) -> None:
    run = changed(prepared / "rldf.sqlite", lambda facets: facets.pop("topic"))
    one_line(parley("export", run, "--format", "trl"), 2, "changed.sqlite", "has no topic")


# Logs of others


def log(change: Callable[[dict[str, Any]], Any]) -> None:
    table = copy.deepcopy(seeds.INSPECT)
    change(table)
    Path("log.json").write_text(json.dumps(table))
    workshop.write_eval(Path("log.eval"), table)


@pytest.mark.parametrize("file", ["log.json", "log.eval"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda log: log["samples"][0]["events"][0]["output"]["usage"].update(input_tokens=float("inf")),
            ("sample 1", "inf"),
        ),
        (
            lambda log: log["samples"][0]["events"][0]["output"].update(time=float("nan")),
            ("sample 1", "nan is not a duration"),
        ),
        (lambda log: log["samples"][1].update(epoch=10**400), ("sample 2", "too large")),
        (lambda log: log["samples"][1].update(messages=7), ("sample 2", "int")),
        (lambda log: log["samples"].append(log["samples"][0]), ("same id",)),
    ],
)  # fmt: skip
def test_an_inspect_log_with_an_odd_value(
    parley: Parley, change: Callable[[dict[str, Any]], Any], words: tuple[str, ...], file: str
) -> None:
    log(change)
    result = parley("import", "inspect", file, "--out", "x.sqlite")
    one_line(result, result.status, *words)
    assert result.status in (1, 2)
    assert not Path("x.sqlite").exists()


def test_an_inspect_log_whose_samples_are_no_list(parley: Parley) -> None:
    Path("log.json").write_text(json.dumps({**seeds.INSPECT, "samples": 7}))
    one_line(parley("import", "inspect", "log.json"), 2, "log.json: its samples are not a list")


def encrypted(content: bytes) -> bytes:
    flagged = bytearray(content)
    at = flagged.find(b"PK\x01\x02")
    while at >= 0:
        flagged[at + 8] |= 1
        at = flagged.find(b"PK\x01\x02", at + 1)
    return bytes(flagged)


def lying(content: bytes) -> bytes:
    """The directory of the archive is no directory."""
    return content.replace(b"PK\x01\x02", b"PK\x09\x09", 1)


def cut(content: bytes) -> bytes:
    """Bytes of a sample are gone, the directory is there."""
    at = content.find(b"samples/0.json") + 40
    return content[:at] + b"\xff" * 60 + content[at + 60 :]


@pytest.mark.parametrize(
    ("broken", "word"),
    [(encrypted, "is encrypted"), (lying, "is damaged or truncated"), (cut, "cannot be unpacked")],
)
def test_a_broken_inspect_archive(parley: Parley, broken: Callable[[bytes], bytes], word: str) -> None:
    log(lambda _: None)
    Path("log.eval").write_bytes(broken(Path("log.eval").read_bytes()))
    one_line(parley("import", "inspect", "log.eval"), 2, "log.eval", word)


def test_half_characters_in_a_log_are_kept_as_escapes(parley: Parley) -> None:
    def halve(table: dict[str, Any]) -> None:
        table["samples"][0].update(id="bus \ud800", metadata={"topic \udfff": "half \ud800"})
        table["samples"][0]["messages"][0]["content"] = "said \ud800"

    log(halve)
    for file in ("log.json", "log.eval"):
        assert parley("import", "inspect", file, "--out", f"{file}.sqlite").status == 0
        shown = parley("show", f"{file}.sqlite", "bus", "--json").json
        assert shown["turns"][0]["text"] == "said \\ud800"
        assert shown["facets"]["scenario"] == "bus \\ud800"
        assert parley("report", f"{file}.sqlite", *FEW).status == 0


def test_metadata_may_be_named_like_our_own_columns(parley: Parley) -> None:
    log(
        lambda table: table["samples"][0].update(metadata={"unit": "kg", "cost": 3, "calls": 1, "value": 2, "round": 9})
    )
    assert parley("import", "inspect", "log.json", "--out", "x.sqlite").status == 0
    assert frames.units("x.sqlite")["unit"].tolist() == ["bus/e1", "tram/e1"]
    assert parley("report", "x.sqlite", *FEW).status == 0


def test_an_infinite_token_count_of_autogens(parley: Parley) -> None:
    dump = copy.deepcopy(seeds.AUTOGEN)
    dump["messages"][1]["models_usage"]["prompt_tokens"] = float("inf")  # type: ignore[index]
    Path("team.json").write_text(json.dumps(dump))
    one_line(parley("import", "autogen", "team.json"), 2, "team.json, conversation 1", "inf")


def test_a_date_that_no_clock_reaches_is_no_date(parley: Parley) -> None:
    log(lambda table: table["samples"][0].update(started_at="0001-01-01T00:00:00"))
    assert parley("import", "inspect", "log.json", "--out", "x.sqlite").status == 0


# Silent successes


def test_a_conversation_that_cannot_be_stored_is_counted_as_failed(parley: Parley) -> None:
    def swell(table: dict[str, Any]) -> None:
        table["samples"][0]["scores"]["match"] = {"value": 10**30, "answer": "yes"}
        table["samples"][1]["events"][0]["model"] = "m"

    log(swell)
    assert parley("import", "inspect", "log.json", "--out", "x.sqlite", "--json").json["failed"] == 1
    dump = {"messages": [{"source": "ada", "content": "Yes.", "metadata": {}}], "stop_reason": ["a", "list"]}
    Path("team.json").write_text(json.dumps(dump))
    result = parley("import", "autogen", "team.json", "--out", "y.sqlite", "--json").json
    with closing(sqlite3.connect("y.sqlite")) as db:
        (done,) = db.execute("SELECT count(*) FROM units WHERE status = 'done'").fetchone()
    assert done == result["units"] - result["failed"]


def test_an_empty_file_of_questions_is_named(parley: Parley) -> None:
    Path("bbq").mkdir()
    Path("bbq/Age.jsonl").write_text("")
    command = ("run", "bbq", "--data", "bbq", "--model", "sim/judge", "--quiet")
    one_line(parley(*command), 2, "Age.jsonl: contains no row")
    Path("bbq/Sex.jsonl").write_text(as_jsonl(seeds.BBQ))
    one_line(parley(*command), 2, "Age.jsonl: contains no row")


def test_a_plan_without_units_is_refused(parley: Parley) -> None:
    Path("study.py").write_text(
        "from parley.judging.malibu import Malibu\n\n\nclass Mine(Malibu):\n    name = 'mine'\n\n"
        "    def plan(self):\n        return iter(())\n"
    )
    command = ("run", "study.py:Mine", "--model", "sim/judge", "--suite", "tiny", "--out", "x.sqlite")
    one_line(parley(*command), 2, "there is nothing to run", "mine has no units")
    assert not Path("x.sqlite").exists()


REPORT = """
from parley.analysis.reporting.report import Report
from parley.judging.malibu import Malibu


def report(verdicts, context):
    return Report("from my own report")


class Mine(Malibu):
    report = report


class Other(Malibu):
    name = "other"
"""


def test_the_report_of_ones_own_study_is_used_even_if_ours_has_its_name(parley: Parley, prepared: Path) -> None:
    Path("study.py").write_text(REPORT)
    run = prepared / "malibu.sqlite"
    assert "from my own report" in parley("report", run, "--study", "study.py:Mine", *FEW).out
    one_line(parley("report", run, "--study", "nothere.py:Mine", *FEW), 2, "there is no file nothere.py")
    one_line(
        parley("report", run, "--study", "study.py:Other", *FEW), 2, "study.py:Other is the study 'other'", "'malibu'"
    )


MARK = "\ufeff"


def test_a_byte_order_mark_is_read_wherever_people_bring_files(parley: Parley, prepared: Path) -> None:
    """Windows' editors write one; SQuAD's file was accepted with it, BBQ's was not."""
    for name in (
        "bbq/Age.jsonl", "squad.json", "rtp.jsonl", "texts.jsonl", "topics.txt", "suite.toml", "config.toml",
        "config.yaml", "inspect.json", "autogen.json", "autogen.jsonl", "predictions.jsonl", "answers.json",
    ):  # fmt: skip
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(MARK + (prepared / name).read_text("utf-8"), "utf-8")
    quick, few = ("--model", "sim/judge", "--quiet"), ("--prompts", "1", "--completions", "1")
    for command in (
        ("run", "bbq", "--data", "bbq", *quick),
        ("run", "squad", "--data", "squad.json", *quick),
        ("run", "rubric", "--data", "texts.jsonl", *quick),
        ("run", "stardtox", "--data", "rtp.jsonl", "--sets", "moderate", *few, *quick),
        ("run", "framing", "--topics-from", "topics.txt", "--topics", "2", *quick),
        ("run", "malibu", "--config", "config.toml", "--dry-run"),
        ("run", "malibu", "--config", "config.yaml", "--dry-run"),
        ("scenarios", "list", "suite.toml"),
        ("import", "bbq", "predictions.jsonl", "--data", "bbq", "--out", "d.sqlite"),
        ("import", "squad", "answers.json", "--data", "squad.json", "--out", "e.sqlite"),
        ("import", "inspect", "inspect.json", "--out", "a.sqlite"),
        ("import", "autogen", "autogen.json", "--out", "b.sqlite"),
        ("import", "autogen", "autogen.jsonl", "--out", "c.sqlite"),
    ):
        result = parley(*command)
        assert result.status == 0, (command, result.err)
    assert len(load_bbq("bbq").rows) == 2
    assert parley("scenarios", "list", "topics.txt", "--json").json["topics"][0].startswith("Should")
