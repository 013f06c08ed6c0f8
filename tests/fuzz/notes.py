"""Target: truncated, corrupted, foreign and malicious notes files, read as the viewer reads them."""

from __future__ import annotations

import json
from pathlib import Path

from parley.runs import RunFile
from parley.runs.notes import Answer, Item, NotesFile
from parley.viewer import labelling
from tests.fuzz.checking import Target
from tests.fuzz.files import FOLDER
from tests.fuzz.runs import edited_file

RUN = FOLDER / "noted" / "a.sqlite"
ENDLESS = "AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
MALICIOUS_SQL = (
    f"DROP TABLE notes; CREATE VIEW notes {ENDLESS} SELECT i AS id, i AS unit, i AS seq, i AS author, i AS tag, "
    "i AS comment, i AS at, NULL AS withdrawn_at FROM n",
    f"DROP TABLE draws; CREATE VIEW draws {ENDLESS} SELECT i AS id, i AS kind, i AS seed, i AS settings, i AS at "
    "FROM n",
    "CREATE TRIGGER t AFTER INSERT ON notes BEGIN DELETE FROM notes; END",
    "ALTER TABLE notes ADD COLUMN big/**/AS/**/(zeroblob(100000000))",
    "DROP TABLE labels",
    "DELETE FROM notes",
    "PRAGMA application_id = 7",
    "PRAGMA user_version = 99",
)
COLUMNS = (
    "notes.unit", "notes.seq", "notes.author", "notes.tag", "notes.comment", "notes.at", "notes.withdrawn_at",
    "draws.kind", "draws.seed", "draws.settings", "draws.at", "items.unit", "items.text_id", "items.probability",
    "items.position", "labels.unit", "labels.rater", "labels.subject", "labels.question", "labels.value",
    "labels.judge_value", "labels.text", "labels.comment", "labels.position", "labels.simulated", "labels.at",
    "labels.draw",
)  # fmt: skip


def read(content: bytes) -> None:
    notes = NotesFile(RUN)
    for old in RUN.parent.glob("a.notes*"):
        old.unlink()
    notes.path.write_bytes(content)
    with RunFile.open(RUN) as file:
        results: list[object] = [notes.notes(), notes.labels(), notes.units_by_tag()]
        for draw in notes.draws():
            results += [
                labelling.draw_json(file, notes, draw),
                labelling.RaterView(file, notes, draw["id"], "ann").next_item(),
            ]
    json.dumps(results).encode()


def target(run: Path) -> Target:
    """Starts from notes and labels of two raters, about a run that is intact."""
    RUN.parent.mkdir(exist_ok=True)
    RUN.write_bytes(run.read_bytes())
    notes = NotesFile(RUN)
    with RunFile.open(RUN) as file:
        units = [
            unit for (unit,) in file.rows("SELECT id FROM units WHERE status = 'done' ORDER BY position LIMIT 4")[1]
        ]
    for unit in units:
        notes.add(unit, None, "ann", "odd", "look at this")
    draw = notes.add_draw(
        "random",
        0,
        [Item(unit, unit, 0.5, n) for n, unit in enumerate(units)],
        {"asked": 4, "drawn": 4, "floor": 1.0, "scores": True, "filters": {}},
    )
    for rater in ("ann", "bob"):
        for unit in units:
            answers = [Answer("", "Accuracy", 7.0, 7.0, None), Answer("", "preferred", 1.0, None, "A")]
            notes.add_labels(draw, unit, rater, answers)
    content = notes.path.read_bytes()
    return Target("notes file", [content], edited_file(notes.path, [content], MALICIOUS_SQL, COLUMNS), read)
