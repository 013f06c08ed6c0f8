"""`parley show RUN [UNIT]`: print a conversation in the terminal, two of them side by side, or find units."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field
from rich.rule import Rule
from rich.text import Text

from parley.agents.transcripts import tool_calls_in
from parley.base.errors import ConfigError
from parley.base.text import plural, visible
from parley.cli.command import Answer, Command
from parley.cli.flags import Positional, Repeated
from parley.cli.shared import newest_run, newest_runs
from parley.cli.side_by_side import side_by_side
from parley.runs import RunFile, explain_damage
from parley.runs.notes import READ, NotesFile, mixed
from parley.runs.reading import differing_in, read_texts, read_unit, verdicts_about, why_nothing_is_done
from parley.runs.rows import text_id


class Show(Command):
    """Print a conversation in the terminal, or list units of a run."""

    run: Positional[str | None] = Field(None, description="the run file (default: the newest in runs/)")
    unit: Positional[str | None] = Field(
        None, description="a unit's id, or the beginning of one (default: the first finished unit)"
    )
    list: bool = Field(False, description="list the units instead")
    finding: int | None = Field(
        None,
        ge=1,
        title="NUMBER",
        description="list the units behind a question of the report instead, largest first; 1 is the headline's",
    )
    where: Repeated[Sequence[str]] = Field(
        [],
        title="FACET=VALUE",
        description="list the units with this value of a facet instead, such as identity=muslim",
    )
    beside: str | None = Field(
        None,
        title="UNIT",
        description="print another unit beside this one, with differing words marked: its id, or the only facet in "
        "which it differs, such as identity=male",
    )
    random: int | None = Field(
        None,
        ge=1,
        title="NUMBER",
        description="print the next unread one of so many units, drawn at random, and note that it is read; with "
        "--list, list them",
    )
    prompts: bool = Field(False, description="also print the exact prompt of every call")
    thoughts: bool = Field(False, description="also print the models' thinking before each reply")

    def answer(self) -> Answer:
        path, prefix = _what(self.run, self.unit)
        with explain_damage(path), RunFile.open(path) as file:
            if self.random:
                return self._at_random(file, self.random)
            if self.list and not self.where:
                return _units(file)
            if self.finding or self.where:
                from parley.cli.found_units import list_behind, list_units  # they load pandas

                return list_behind(file, self.finding, self.where) if self.finding else list_units(file, self.where)
            unit = _find(file, prefix)
            if self.beside:
                other = _find_beside(file, unit["id"], self.beside)
                return side_by_side(read_unit(file, unit["id"]), read_unit(file, other))
            turns = _turns(file, unit["id"], with_prompts=self.prompts)
            others = _count(file, prefix) - 1 if prefix else 0
            return Answer({**unit, "turns": turns}, list(self._lines(unit, turns, others, prefix)))

    def _at_random(self, file: RunFile, count: int) -> Answer:
        """The first drawn unit that is not read, or the list of all that are drawn."""
        _, rows = file.rows("SELECT id, position FROM units WHERE status = 'done'")
        if self.where:
            from parley.cli.found_units import find_units, read_filters  # they load pandas

            among = {unit.id for unit in find_units(file, read_filters(self.where))}
            rows = [row for row in rows if row[0] in among]
        drawn = [str(unit) for unit, _ in sorted(rows, key=lambda row: mixed(row[1]))[:count]]
        notes = NotesFile(Path(file.path))
        read = {*notes.units_by_tag().get(READ, ())} & {*drawn}
        unread = [unit for unit in drawn if unit not in read]
        if self.list or not unread:
            data = [{"id": unit, "read": unit in read} for unit in drawn]
            lines = [f"{'read' if unit in read else '':<5} {unit}" for unit in drawn]
            return Answer(data, [*lines, f"{len(read)} of {plural(len(drawn), 'unit')} read"])
        unit = _find(file, unread[0])
        notes.add(unit["id"], None, "", READ, "")
        turns = _turns(file, unit["id"], with_prompts=self.prompts)
        told = f"\n{len(read) + 1} of {len(drawn)} read (noted in {notes.path.name})"
        told += "; the same command prints the next" * (len(unread) > 1)
        return Answer({**unit, "turns": turns}, [*self._lines(unit, turns, 0, None), told])

    def _lines(
        self, unit: dict[str, Any], turns: Sequence[dict[str, Any]], others: int, prefix: str | None
    ) -> Iterator[Any]:
        yield from _conversation(unit, turns, with_thoughts=self.thoughts)
        if others:
            begin = "begins" if others == 1 else "begin"
            yield f"\n{plural(others, 'other unit')} also {begin} with '{prefix}': --list prints all ids"


def _count(file: RunFile, prefix: str) -> int:
    """The number of units whose ids begin like this."""
    _, rows = file.rows("SELECT count(*) FROM units WHERE substr(id, 1, length(?1)) = ?1 AND id != ?1", (prefix,))
    exact = file.status(prefix) is not None
    return 1 if exact else int(rows[0][0])


def _what(run: str | None, unit: str | None) -> tuple[Path, str | None]:
    """The run file and the unit; a single name that is not a file is a unit of the newest run."""
    if run is None:
        return newest_run(), None
    path = Path(run)
    if unit is None and not os.path.exists(path) and path.suffix != ".sqlite" and newest_runs():
        return newest_run(), run
    return path, unit


def _units(file: RunFile) -> Answer:
    _, rows = file.rows("SELECT id, status, coalesce(error, '') FROM units ORDER BY position")
    data = [{"id": unit, "status": status, "error": error} for unit, status, error in rows]
    return Answer(data, (f"{status:<8} {unit}{'  ' + error if error else ''}" for unit, status, error in rows))


def _find(file: RunFile, prefix: str | None) -> dict[str, Any]:
    columns, rows = file.rows(
        "SELECT id, status, facets, error, stop_reason FROM units WHERE substr(id, 1, length(?1)) = ?1 "
        "AND (status = 'done' OR ?1 != '') ORDER BY status != 'done', position LIMIT 1",
        (prefix or "",),
    )
    if not rows:
        raise ConfigError(
            f"no unit id of {file.path} begins with '{prefix}'; parley show {file.path} --list prints them"
            if prefix
            else f"{file.path}: {why_nothing_is_done(file)}"
        )
    unit = dict(zip(columns, rows[0], strict=True))
    file.check_unit(unit["id"])
    unit["facets"] = json.loads(unit["facets"])
    return unit


def _find_beside(file: RunFile, unit: str, wanted: str) -> str:
    """The unit to show beside this one, by its id or by the facet in which it differs."""
    facet, sign, value = wanted.partition("=")
    if not sign or file.status(wanted):
        return str(_find(file, wanted)["id"])
    others = differing_in(file, unit, facet)
    if value not in others:
        listed = ", ".join(f"{facet}={other}" for other in others)
        raise ConfigError(
            f"no finished unit differs from '{unit}' only by {wanted}; "
            + (f"there are {listed}" if listed else "name another unit by its id")
        )
    return others[value]


def _turns(file: RunFile, unit: str, *, with_prompts: bool) -> list[dict[str, Any]]:
    """The turns with their calls: tools called and, with `with_prompts`, prompts.

    Each turn also has the verdicts `about` it: a referee's, and those of rules.
    """
    read = read_unit(file, unit)
    turns: list[dict[str, Any]] = read["messages"]
    for turn in turns:
        turn["about"] = verdicts_about(turn, read["verdicts"])
    replies = file.rows("SELECT seq, nth, text FROM calls JOIN texts ON texts.id = reply WHERE unit = ?", (unit,))[1]
    reply_of = {(seq, nth): text for seq, nth, text in replies}
    for turn in turns:
        if turn["role"] == "narrator":
            turn["to"] = _readers(turn, turns)
    for turn in turns:
        for call in turn["calls"]:
            call["tools"] = tool_calls_in(reply_of.get((turn["seq"], call.pop("nth")), ""))
            pieces = call.pop("prompt")
            if with_prompts:
                texts = read_texts(file, (text_id for _, _, text_id in pieces))
                call["prompt"] = [
                    {"role": role, "source": source, "text": texts[text_id]} for role, source, text_id in pieces
                ]
    return turns


def _readers(narrated: dict[str, Any], turns: list[dict[str, Any]]) -> list[str]:
    """The agents whose prompts have the narrator's text: instructions may be for a single agent."""
    text = str(text_id(narrated["text"]))
    later = [turn for turn in turns if turn["seq"] > narrated["seq"] and turn["role"] != "narrator"]
    read = (
        turn["speaker"] for turn in later for call in turn["calls"] if text in (piece[2] for piece in call["prompt"])
    )
    return list(dict.fromkeys(read))


def _conversation(
    unit: dict[str, Any], turns: Sequence[dict[str, Any]], *, with_thoughts: bool
) -> Iterator[Rule | Text]:
    facets = "  ".join(f"{key}={value}" for key, value in unit["facets"].items() if value not in ("", None))
    yield Rule(_text(unit["id"], "bold"))
    yield _text(f"{unit['status']}  {facets}", "dim")
    if unit["error"]:
        yield _text(unit["error"], "red")
    agents = {turn["speaker"] for turn in turns if turn["role"] != "narrator" and turn["calls"]}
    for turn in turns:
        yield Text()
        if turn["role"] == "narrator":
            heard = "  (another conversation, heard before round 2)" if turn["calls"] and turn["text"] else ""
            source = turn["speaker"] + heard
            yield _text(_addressed(turn, agents) if turn["speaker"] == "user" else source, "dim")
        else:
            place = f"round {turn['round']}" if turn["round"] or not turn["expected"] else "silent ballot"
            yield _text(f"{turn['speaker']}  ({place})", "bold cyan")
        for call in turn["calls"]:
            for piece in call.get("prompt", ()):
                who = {"user": "prompt", "self": "reply"}.get(piece["source"], f"{piece['role']} {piece['source']}")
                yield _text(f"  | {who}: {piece['text']}", "dim")
            for tool, arguments in call["tools"]:
                yield _text(f"  calls {tool}({arguments})", "dim")
        if turn["thought"]:
            length = plural(len(turn["thought"]), "character")
            yield _text(turn["thought"] if with_thoughts else f"thought: {length}; --thoughts shows them", "dim italic")
        yield _text(turn["text"])
        if notes := list(_notes(turn)):
            yield _text("  " + " · ".join(notes), "dim")


def _text(text: str, style: str = "") -> Text:
    return Text(visible(text), style=style)


def _addressed(turn: dict[str, Any], agents: set[str]) -> str:
    if len(agents) > 1 and set(turn["to"]) == agents:
        return "to all agents"
    return f"to {', '.join(turn['to'])}" if turn["to"] else "prompt"


def _notes(turn: dict[str, Any]) -> Iterator[str]:
    for call in turn["calls"]:
        yield f"{call['prompt_tokens']}+{call['completion_tokens']} tokens, {call['latency']:.2f} s"
        if call["thought_tokens"]:
            yield f"{call['thought_tokens']} of them thinking"
        if call["cached"]:
            yield "cached"
        elif call["cached_tokens"]:
            yield f"{call['cached_tokens']} of them in the server's cache"
        if call["cost"]:
            yield f"${call['cost']:.2g}"
    if turn["parse_status"]:
        yield turn["parse_status"]
    if turn["cut"] and turn["parse_status"] != "cut":
        yield "cut"
    if turn["flags"]:
        yield f"reads like an instruction: {', '.join(turn['flags'])}"
    parsed = turn["parsed"] if turn["role"] == "evaluator" else None
    for name, value in (parsed or {}).items():
        if value is None and name != "raw":  # many scorers have no raw score
            yield f"{name} unparsed"
        elif isinstance(value, int | float):
            yield f"{name} {value:g}"
    for verdict in turn["about"]:
        yield f"{verdict['judge']}: {verdict['metric']} {verdict['value']:.4g}"
    if turn["expected"]:
        yield "expected " + ", ".join(f"{path} {value:.2f}" for path, value in turn["expected"].items())
