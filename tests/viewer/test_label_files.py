"""Labels from people, from simulated raters and from other tools: drawn, exported and imported elsewhere."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from parley import frames
from parley.agents import ConfigError
from parley.analysis.labels import rated_texts
from parley.cli import main
from parley.reports.labels.answers import SimulatedRater, judged
from parley.reports.labels.draws import DrawSettings, draw_items, rater_order
from parley.reports.labels.files import import_labels
from parley.reports.labels.items import label_item
from parley.runs import RunFile
from parley.runs.notes import Answer, NotesFile
from parley.viewer.labelling import RaterView, agreement


@pytest.fixture
def run(malibu: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(malibu, tmp_path / "m.sqlite"))


def units_of(file: RunFile) -> list[str]:
    return [unit for (unit,) in file.rows("SELECT id FROM units WHERE status = 'done' ORDER BY position")[1]]


def complaints(capsys: pytest.CaptureFixture[str], *command: object) -> list[str]:
    assert main(["labels", *map(str, command)]) == 2
    return capsys.readouterr().err.splitlines()


def test_labels_imported_elsewhere_give_the_same_numbers(run, malibu, tmp_path, capsys):
    assert main(["labels", "draw", str(run), "--items", "3", "--floor", "0.5", "--where", "f.phase=1"]) == 0
    raters = ["--rater", "sim/rater?agree=0.5&skip=0.3", "--rater", "sim/rater?agree=1"]
    assert main(["labels", "simulate", str(run), *raters]) == 0
    with RunFile.open(run) as file:
        RaterView(file, NotesFile(run), 1, "Ann").store(0, [], None, "=1+1")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = Path(shutil.copy(malibu, elsewhere / "n.sqlite"))
    for form in ([], ["--jsonl"]):
        NotesFile(other).path.unlink(missing_ok=True)
        assert main(["labels", "export", str(run), *form, "--to", str(tmp_path / "labels")]) == 0
        assert main(["labels", "import", str(tmp_path / "labels"), str(other)]) == 0
        assert (",'=1+1," in (tmp_path / "labels").read_text()) == (not form), "no spreadsheet runs a comment"
        assert "=1+1" in {row["comment"] for row in NotesFile(other).labels()}, "and it comes back"
        pd.testing.assert_frame_equal(frames.labels(run), frames.labels(other))
        pd.testing.assert_frame_equal(frames.drawn(run), frames.drawn(other))
        numbers = []
        for path in (run, other):
            with RunFile.open(path) as file:
                numbers.append(agreement(file, NotesFile(path), 1))
        assert numbers[0] == numbers[1]
        assert numbers[0]["simulated"]
    assert "SIMULATED: sim/rater?agree=1 labelled" in capsys.readouterr().out


def test_every_wrong_line_of_a_file_is_named_at_once_and_nothing_is_stored(run, tmp_path, capsys):
    with RunFile.open(run) as file:
        single, pair = units_of(file)[0], next(unit for unit in units_of(file) if unit.startswith("p2"))
    rows = [
        "unit,rater,question,subject,value",
        f"{single},Ann,Accuracy,,7",
        f"{single},Ann,Accuracy,,8",
        f"{single},Ann,Beauty,,7",
        f"{single},Ann,Creativity,,11",
        "nothing,Ann,Accuracy,,7",
        f"{pair},,preferred,,A",
        f"{pair},Ann,preferred,,C",
        f"{pair},Ann,Accuracy,,5",
    ]
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    *lines, summary = complaints(capsys, "import", tmp_path / "labels.csv", run)
    assert summary.endswith("labels.csv: 7 problems, nothing was imported")
    assert [line.partition(":")[0] for line in lines] == [f"line {number}" for number in range(3, 10)]
    for line, words in zip(
        lines,
        ("this at line 2", "'Beauty' is not asked", "from 0 to 10, not '11'", "not in the run", "rater is missing",
         "'C' is not an option of preferred: A, B, tie", "subject may be A, B"),
        strict=True,
    ):  # fmt: skip
        assert words in line
    assert NotesFile(run).labels() == []
    (tmp_path / "labels.csv").write_text("unit,question\n")
    assert "no column rater or value" in complaints(capsys, "import", tmp_path / "labels.csv", run)[0]


def test_labels_of_label_studio_and_argilla_are_read(run, tmp_path, capsys):
    with RunFile.open(run) as file:
        single, pair = units_of(file)[0], next(unit for unit in units_of(file) if unit.startswith("p2"))
    annotation = {"completed_by": 10, "result": [{"from_name": "preferred", "value": {"choices": ["B"]}}]}
    skipped = {"completed_by": {"email": "b@x.org"}, "was_cancelled": True, "result": annotation["result"]}
    rated = {"completed_by": 10, "result": [{"from_name": "Accuracy:A", "value": {"rating": 4}}]}
    studio = [{"id": 1, "data": {"unit": pair}, "annotations": [annotation, skipped, rated]}]
    (tmp_path / "studio.json").write_text(json.dumps(studio))
    answered = {"value": 9, "user_id": "u1", "status": "submitted"}
    argilla = [{"id": single, "fields": {}, "metadata": {}, "responses": {"Accuracy": [answered]}}]
    (tmp_path / "argilla.json").write_text(json.dumps(argilla))
    for name in ("studio", "argilla"):
        assert main(["labels", "import", str(tmp_path / f"{name}.json"), str(run)]) == 0
    assert "chosen, not drawn at random" in capsys.readouterr().out
    labels = frames.labels(run)
    stored = {(row.rater, row.question, row.subject): row.value for row in labels.fillna({"value": -1}).itertuples()}
    assert stored[("10", "preferred", "")] == 0.0
    assert stored[("b@x.org", "preferred", "")] == -1, "a cancelled annotation is a skip"
    assert (stored[("10", "Accuracy", "A")], stored[("u1", "Accuracy", "")]) == (4.0, 9.0)
    assert rated_texts(labels, frames.drawn(run), "Accuracy").empty, "nobody drew them at random"


def test_a_label_that_contradicts_an_earlier_one_is_refused(run, tmp_path, capsys):
    with RunFile.open(run) as file:
        draw_items(file, NotesFile(run), DrawSettings(count=20))
        unit = next(item.unit for item in NotesFile(run).items(1) if item.position is not None and item.unit[1] == "1")
    for value, status in ((7, 0), (7, 0), (8, 2)):
        (tmp_path / "one.csv").write_text(f"unit,rater,question,value\n{unit},Ann,Accuracy,{value}\n")
        assert main(["labels", "import", str(tmp_path / "one.csv"), str(run), "--draw", "1"]) == status
    assert "line 2: Ann already answered this with 7.0" in capsys.readouterr().err
    (label,) = NotesFile(run).labels()
    assert label["probability"] == 1.0, "the draw says how the unit was drawn"


def test_two_draws_differ_and_raters_have_orders_and_habits_of_their_own(run):
    notes = NotesFile(run)
    with pytest.raises(ConfigError, match="the options are agree, bias, noise, skip"):
        SimulatedRater.named("sim/rater?agreee=1")
    never = SimulatedRater.named("sim/rater?agree=0")
    with RunFile.open(run) as file:
        unit = next(unit for unit in units_of(file) if unit.startswith("p2"))
        item, said = label_item(file, unit), judged(file, unit)
        chosen = [never.answers(item, said, seed)[0].text for seed in range(600)]
        assert chosen.count("A") / 600 == pytest.approx(1 / 3, abs=0.08), "at random"
        first = draw_items(file, notes, DrawSettings(count=3, seed=0))
        with pytest.raises(ConfigError, match="draw 1 was made with the same settings and seed"):
            draw_items(file, notes, DrawSettings(count=3, seed=0))
        queue = draw_items(file, notes, DrawSettings(count=3, kind="sorted"))
    settings = DrawSettings(count=3, seed=0)
    orders = {tuple(rater_order(settings, notes.items(first), f"rater {n}")) for n in range(30)}
    assert len(orders) == 6, "all orders of three items"
    assert {item.probability for item in notes.items(queue)} == {None}
    assert DrawSettings.from_recipe(settings.recipe()) == settings


def test_several_raters_store_and_read_at_the_same_time(run: Path) -> None:
    """Readers met a file that was just being written: the page said that the server had failed."""
    with RunFile.open(run) as file:
        draw = draw_items(file, NotesFile(run), DrawSettings(count=5, seed=1))
        unit = units_of(file)[0]

    def label(rater: int) -> None:
        notes = NotesFile(run)
        for number in range(15):
            notes.add_labels(draw, unit, f"rater {rater}", [Answer("", f"q{number}", 1.0, None, None)])
            assert sum(row["rater"] == f"rater {rater}" for row in notes.labels(draw)) == number + 1

    with ThreadPoolExecutor(8) as raters:
        list(raters.map(label, range(8)))
    assert len(NotesFile(run).labels(draw)) == 8 * 15


def test_labels_are_imported_all_or_none(run, malibu, tmp_path, monkeypatch) -> None:
    """Each item was a transaction of its own: a process that ended in between left half of them."""
    with RunFile.open(run) as file:
        draw_items(file, NotesFile(run), DrawSettings(count=5, seed=1))
    assert main(["labels", "simulate", str(run)]) == 0
    target, path = Path(shutil.copy(malibu, tmp_path / "other.sqlite")), tmp_path / "labels.jsonl"
    assert main(["labels", "export", str(run), "--jsonl", "--to", str(path)]) == 0
    whole, left = NotesFile.add_labels, iter(range(2))

    def killed(*arguments: Any, **about: Any) -> None:
        whole(*arguments, **about)
        if next(left, None) is None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, RunFile.open(target) as file:
        patch.setattr(NotesFile, "add_labels", killed)
        with pytest.raises(KeyboardInterrupt):
            import_labels(file, NotesFile(target), path)
    assert (NotesFile(target).draws(), NotesFile(target).labels()) == ([], [])
    assert main(["labels", "import", str(path), str(target)]) == 0
    assert len(NotesFile(target).labels()) == len(NotesFile(run).labels()) > 0
