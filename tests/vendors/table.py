"""How one study ends with one vendor and one kind of reply, and whether that is as it should be.

cell = try_out(trial, standins()["openai"], "thinking", plain)
cell.word, cell.faults
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from parley.cli import main
from tests.chaos.studies import Trial, topics, trials
from tests.conftest import File
from tests.vendors.attacks import FormsInTurn
from tests.vendors.base import KEY, Kind, StrictServer, standins

SECRET = "A thought that nobody hears"
"""What every thought of a stand-in has."""
READABLE = ("ok", "repaired")


def studies() -> list[Trial]:
    """Every shipped study and a user's own, as small as they can be."""
    return [
        *trials(units=1),
        Trial("rlaif", ("rlaif", "--topics-from", "topics.txt"), topics(2)),
        Trial("topics", ("topics", "--bias", "age", "--count", "2", "--tries", "1")),
        Trial("malibu-derive", ("malibu-derive", "--bases", "fitness", "--count", "2", "--tries", "1")),
        Trial("malibu-respond", ("malibu-respond", "--suite", "tiny", "--per-base", "1", "--anew", "--tries", "1")),
    ]


class Verdict(NamedTuple):
    """A row of the run file; verdicts of rules about a statement are left out."""

    unit: str
    judge: str
    round: int
    metric: str
    subject: str
    value: float | None
    text: str | None
    status: str


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What a run left behind."""

    exit: int
    units: dict[str, int]
    verdicts: list[Verdict]
    marked: dict[str, int]
    """Replies of the model by how they are marked: `cut`, `refused`, or ""."""
    said: str
    """What the command printed."""
    faults: tuple[str, ...]
    """What is wrong whatever the kind: requests that the vendor rejects, calls that do not count, thoughts heard."""

    @property
    def read(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.status in READABLE]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of the table: how the run ended, in a word, and what is wrong with that."""

    word: str
    faults: tuple[str, ...]
    ending: Ending


@contextlib.contextmanager
def _empty_folder() -> Iterator[Path]:
    before, home = Path.cwd(), os.environ.get("PARLEY_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["PARLEY_HOME"] = str(Path(folder) / "home")
        try:
            yield Path(folder)
        finally:
            os.chdir(before)
            os.environ.pop("PARLEY_HOME")
            if home is not None:
                os.environ["PARLEY_HOME"] = home


def run(trial: Trial, vendor: type[StrictServer], kind: Kind, forms: FormsInTurn | None = None) -> Ending:
    """Run the study against the vendor's stand-in."""
    printed = io.StringIO()
    with _empty_folder() as folder, vendor(kind, forms=forms) as server:
        trial.prepare(folder)
        command = [*trial.command(server.name("retries=1")), "--no-cache", "--out", "a.sqlite"]
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                status = main(command)
            except SystemExit as end:
                status = int(end.code or 0)
        file = File("a.sqlite")
        mark = "CASE WHEN parse_status = 'refused' THEN 'refused' WHEN cut THEN 'cut' ELSE '' END"
        replies = (
            "FROM messages m WHERE role != 'narrator' AND "
            "EXISTS (SELECT 1 FROM calls c WHERE c.unit = m.unit AND c.seq = m.seq)"
        )
        columns = "unit, judge, round, metric, subject, value, text, status"
        return Ending(
            exit=status,
            units=dict(file.rows("SELECT status, count(*) FROM units GROUP BY 1")),
            verdicts=[
                Verdict(row[0].partition("/@")[0], *row[1:])  # the model's name has the server's port
                for row in file.rows(f"SELECT {columns} FROM verdicts WHERE role != 'coordinator' ORDER BY unit, nth")
            ],
            marked=dict(file.rows(f"SELECT {mark}, count(*) {replies} GROUP BY 1")),
            said=printed.getvalue(),
            faults=tuple(_faults(server, file)),
        )


def _faults(server: StrictServer, file: File) -> Iterator[str]:
    if server.rejected:
        yield f"rejected: {server.rejected[0]}"
    if any(SECRET in text for received in server.requests for _, text in server.turns(received.body)):
        yield "a thought was heard"
    if file.one(f"SELECT count(*) FROM transcript WHERE text LIKE '%{SECRET}%'"):
        yield "a thought was taken for speech"
    counted = int(file.one("SELECT count(*) FROM calls WHERE NOT cached"))
    counted += sum(
        json.loads(detail)[0] for (detail,) in file.rows("SELECT detail FROM events WHERE kind = 'abandoned'")
    )
    if counted != len(server.requests):
        yield f"{counted} calls count, and {len(server.requests)} were answered"


def try_out(
    trial: Trial, vendor: type[StrictServer], kind: Kind, plain: Ending | None = None, forms: FormsInTurn | None = None
) -> Cell:
    """Run the study and judge how it ended.

    Args:
        trial: the study.
        vendor: the stand-in.
        kind: how the model replies.
        plain: how the run with plain replies ended, for kinds that must give the same verdicts.
        forms: the forms of thought in front of the plain answers.
    """
    ending = run(trial, vendor, kind, forms)
    word, fault = _judge(ending, vendor, kind, plain)
    return Cell(word=word, faults=(*ending.faults, *filter(None, [fault])), ending=ending)


def try_forms(trial: Trial, vendor: type[StrictServer]) -> dict[str, Cell]:
    """One cell for every form of thought. The answers of a run take the forms in turn, in as many runs as that needs;
    only where one of these ends badly does each form get a run of its own, to tell which it was."""
    plain, forms, cells = run(trial, vendor, "plain"), FormsInTurn(), list[Cell]()
    while not forms.done:
        cells.append(try_out(trial, vendor, "plain", plain, forms))
    if any(cell.faults for cell in cells):
        return {name: try_out(trial, vendor, "plain", plain, FormsInTurn([name])) for name in forms.names}
    return dict.fromkeys(forms.names, cells[0])


def _judge(ending: Ending, vendor: type[StrictServer], kind: Kind, plain: Ending | None) -> tuple[str, str]:
    """How the run ended, in a word; and what is wrong with it, if anything is."""
    if kind in ("plain", "thinking", "parts") or (kind == "filtered" and not vendor.marks_refusals):
        if ending.exit or not ending.read:
            return "nothing", f"nothing was read: {ending.said[-200:]}"
        if plain is not None and ending.verdicts != plain.verdicts:
            return "other", "the verdicts are not those of the plain replies"
        return "read", ""
    if not ending.read:
        if not ending.exit:
            return "nothing", "nothing was read, and the run succeeded"
        failed = ending.units.get("failed", 0) == sum(ending.units.values())
        reason = "raise --max-tokens" if kind in ("cut", "null") else "refused"
        return "failed" if failed else "none", "" if reason in ending.said else f"it does not say: {reason}"
    if kind == "null":
        return "read", "verdicts were read from replies without content"
    if kind == "refused" and not vendor.marks_refusals:
        return "said", "" if "" in ending.marked else "a verdict was read from what is marked as refused"
    if kind in ("refused", "filtered"):
        return "read", "verdicts were read from refusals"
    return "marked", "" if ending.marked.keys() == {kind} else f"a {kind} reply is not marked: {ending.marked}"


def set_keys(environment: Any = os.environ) -> None:
    """Every vendor's key."""
    for standin in standins().values():
        if standin.key_variable:
            environment[standin.key_variable] = KEY
