"""Reads a unit: facets, messages with parsed values, calls, verdicts, and the values in its prompt.

Also finds the same text under other labels.
"""

from __future__ import annotations

import json
import string
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.agents.fencing import fenced_texts, instruction_kinds
from parley.agents.providers import SAMPLED
from parley.base.errors import ParleyError
from parley.base.text import plural
from parley.judging.study import Chat, EarlierRun
from parley.runs.diagnosis import explain_damage
from parley.runs.rows import finite
from parley.runs.store import RunFile
from parley.runs.studies import facets_of

if TYPE_CHECKING:
    from parley.analysis.stats.results import Line


MAX_TASK_CHARACTERS = 200_000
"""Longer tasks are not matched with the run's prompt templates."""
TEXTS_PER_QUERY = 500
"""SQLite limits the number of parameters in one statement."""


class NotFound(ParleyError):
    """A run or unit that does not exist."""


def read_unit(file: RunFile, unit_id: str, *, checked: bool = True) -> dict[str, Any]:
    """A unit with its messages, verdicts, and the values in its prompt.

    Args:
        file: The run.
        unit_id: The unit.
        checked: Whether to compare it with its checksums.
    """
    columns, rows = file.rows(
        "SELECT id, position, facets, status, error, stop_reason, started_at, finished_at FROM units WHERE id = ?",
        (unit_id,),
    )
    if not rows:
        raise NotFound(f"there is no unit '{unit_id}' in this run")
    unit = dict(zip(columns, rows[0], strict=True))
    if checked:
        file.check_unit(unit_id)
    unit["facets"] = parse_facets(unit["facets"])
    unit["messages"] = read_messages(file, unit_id)
    columns, rows = file.rows(
        "SELECT judge, role, round, subject, metric, value, sampled, text, status, seq FROM verdicts "
        "WHERE unit = ? ORDER BY nth",
        (unit_id,),
    )
    unit["verdicts"] = [dict(zip(columns, row, strict=True)) for row in rows]
    unit["fields"] = _prompt_fields(unit["messages"], [row[0] for row in file.rows("SELECT text FROM prompts")[1]])
    return unit


def _prompt_fields(messages: Sequence[Mapping[str, Any]], templates: Sequence[str]) -> dict[str, str]:
    task = next((message["text"] for message in messages if message["role"] == "narrator"), "")
    fields = template_fields(task, templates)
    # BBQ's question is a template of its own: context, question and options.
    return fields | template_fields(fields.get("question", ""), templates)


def why_nothing_is_done(file: RunFile) -> str:
    """A line on what stopped a run without finished units, and how to resume it."""
    units = file.counts()
    study = file.info().get("study")
    _, errors = file.rows(
        "SELECT error, count(*) FROM units WHERE status = 'failed' GROUP BY error ORDER BY 2 DESC LIMIT 1"
    )
    _, events = file.rows(
        "SELECT kind, detail FROM events WHERE kind IN ('started', 'stopped') ORDER BY at DESC LIMIT 1"
    )
    reasons = [f"it was stopped: {detail}" for kind, detail in events if kind == "stopped"]
    for error, count in errors:
        if not reasons or str(error) not in reasons[0]:
            reasons.append(f"{count:,} of {plural(units['failed'], 'failed unit')} with: {error}")
    why = f" ({'; '.join(reasons)})" if reasons else ""
    total = plural(sum(units.values()), "unit")
    again = "" if SAMPLED in why else f"; type the same `parley run {study}` command again to resume it"
    return f"none of {total} is done{why}{again}"


def read_config(file: RunFile) -> dict[str, Any]:
    """All stored data about a run, with its prompts."""
    prompts = file.rows("SELECT name, text FROM prompts ORDER BY name")[1]
    return {"info": file.info(), "prompts": [{"name": name, "text": text} for name, text in prompts]}


def parse_facets(text: str) -> dict[str, str]:
    """A unit's facets as text, for display, filters and comparisons."""
    return {
        key: value if isinstance(value, str) else str(value) if type(value) is int else json.dumps(value)
        for key, value in json.loads(text).items()
    }


def read_messages(file: RunFile, unit_id: str) -> list[dict[str, Any]]:
    """The messages of a unit, each with its calls."""
    columns, rows = file.rows(
        "SELECT seq, round, speaker, role, persona, text, parse_status, parsed, expected, thought, cut FROM transcript "
        "WHERE unit = ? ORDER BY seq",
        (unit_id,),
    )
    messages = [dict(zip(columns, row, strict=True)) for row in rows]
    calls: dict[int, list[dict[str, Any]]] = {}
    columns, rows = file.rows(
        "SELECT seq, nth, model, prompt, prompt_tokens, completion_tokens, latency, cost, cached, attempts, "
        "cached_tokens, thought_tokens FROM calls WHERE unit = ? ORDER BY seq, nth",
        (unit_id,),
    )
    for row in rows:
        call = dict(zip(columns, row, strict=True))
        # As text: the ids have 63 bits, and JavaScript's numbers 53.
        call["prompt"] = [[role, source, str(text)] for role, source, text in json.loads(call["prompt"])]
        calls.setdefault(call.pop("seq"), []).append(call)
    for message in messages:
        message["parsed"] = json.loads(message["parsed"]) if message["parsed"] else None
        message["expected"] = finite(json.loads(message["expected"])) if message["expected"] else None
        message["flags"] = _flags(message["role"], message["text"])
        message["calls"] = calls.get(message["seq"], [])
    return messages


def verdicts_about(message: Mapping[str, Any], verdicts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The verdicts of others on a statement: a referee's scores, and those of rules."""
    return [
        verdict
        for verdict in verdicts
        if (verdict["subject"], verdict["round"]) == (message["speaker"], message["round"])
        and verdict["judge"] != message["speaker"]
        and message["role"] != "narrator"
        and (verdict["value"] if verdict["role"] == "coordinator" else verdict["value"] is not None)
    ]


def differing_in(file: RunFile, unit_id: str, facet: str) -> dict[str, str]:
    """The finished units that differ from a unit in this facet and in no other, by its value.

    Facets that it determines may differ, such as the label that was heard with the author's identity. In the other
    order, the sides of a pair are swapped, so `identity_a` and `identity_b` differ too.

    Args:
        file: The run.
        unit_id: The unit.
        facet: The facet's name, such as "identity".
    """
    swaps = any(declared.name == facet and declared.kind == "order" for declared in facets_of(file.info()))
    _, rows = file.rows("SELECT id, facets FROM units WHERE status = 'done' OR id = ? ORDER BY position", (unit_id,))
    ids, facets = [unit for unit, _ in rows], [parse_facets(text) for _, text in rows]
    names = {name for each in facets for name in each if not (swaps and name.endswith(("_a", "_b")))}
    columns = {name: [each.get(name, "") for each in facets] for name in (facet, *names)}
    place = ids.index(unit_id)
    pairs = (
        (value, pair)
        for value in dict.fromkeys(columns[facet])
        for pair in matched_units(columns, facet, columns[facet][place], value)
    )
    return {value: ids[second] for value, (first, second) in pairs if first == place != second}


def _flags(role: str, text: str) -> list[str]:
    """Kinds of instruction to a model in a statement or in fenced text."""
    texts = fenced_texts(text) if role == "narrator" else [text] if role in ("debater", "generator") else []
    return list(dict.fromkeys(kind for text in texts for kind in instruction_kinds(text)))


def read_texts(file: RunFile, ids: Iterable[str]) -> dict[str, str]:
    """Texts by id, as calls refer to them in their prompts."""
    numbers = sorted({int(text_id) for text_id in ids if text_id.isdecimal() and len(text_id) < 20})
    texts: dict[str, str] = {}
    for start in range(0, len(numbers), TEXTS_PER_QUERY):
        batch = numbers[start : start + TEXTS_PER_QUERY]
        marks = ",".join("?" * len(batch))
        _, rows = file.rows(f"SELECT id, text FROM texts WHERE id IN ({marks})", batch)
        texts |= {str(key): text for key, text in rows}
    return texts


def earlier_run(path: str) -> EarlierRun:
    """The data of a run that a study can read; see `Study.make`."""
    with explain_damage(Path(path)), RunFile.open(Path(path)) as file:
        info = file.info()
        _, rows = file.rows(
            "SELECT m.unit, m.speaker, c.prompt FROM messages m JOIN units u ON u.id = m.unit "
            "JOIN calls c ON c.unit = m.unit AND c.seq = m.seq AND c.nth = 0 "
            "WHERE u.status = 'done' ORDER BY u.position, m.seq"
        )
        prompts: dict[str, dict[str, Chat]] = {}
        for unit, speaker, prompt in rows:
            parts = [(role, str(text_id)) for role, _, text_id in json.loads(prompt)]
            texts = read_texts(file, (text_id for _, text_id in parts))
            chat = [{"role": role, "content": texts[text_id]} for role, text_id in parts]
            prompts.setdefault(unit, {})[speaker] = chat
        return EarlierRun(study=info["study"], config=info["config"], prompts=prompts)


def template_fields(text: str, templates: Sequence[str]) -> dict[str, str]:
    """The values of the prompt's placeholders, found by matching the text with the run's own templates.

    The longest template that fits is used. Its literal parts are searched from left to right, so the time is linear
    whatever the text contains.
    """
    best: tuple[int, dict[str, str]] = (0, {})
    if len(text) <= MAX_TASK_CHARACTERS:
        for template in templates:
            fields = _match_template(text, template)
            if fields and len(template) > best[0]:
                best = (len(template), fields)
    return best[1]


@lru_cache(maxsize=1024)
def _parts(template: str) -> list[tuple[str, str | None]]:
    """The texts of a template, each with the placeholder after it; empty if it is not one."""
    try:
        parts = [(literal, name) for literal, name, _, _ in string.Formatter().parse(template)]
    except ValueError:
        return []
    # A stored rubric is JSON, which a formatter reads as one placeholder that fits every text.
    return parts if all(name.isidentifier() for _, name in parts if name is not None) else []


def _match_template(text: str, template: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    end, open_field = 0, None
    for literal, name in _parts(template):
        start = text.find(literal, end) if literal else end
        if start < 0 or (open_field is None and start != end):
            return {}
        if open_field is not None:
            fields[open_field] = text[end:start]
        end, open_field = start + len(literal), name
    if open_field is not None:
        fields[open_field] = text[end:]
    elif end != len(text):
        return {}
    return fields


def read_ballots(file: RunFile, units: Sequence[str]) -> dict[str, dict[str, float]]:
    """By unit, the probabilities of its last message; units without any are left out.

    Args:
        file: The run.
        units: The units' ids.
    """
    marks = ",".join("?" * len(units))
    _, rows = file.rows(
        f"SELECT unit, expected FROM messages WHERE unit IN ({marks}) AND expected IS NOT NULL ORDER BY unit, seq",
        units,
    )
    return {unit: finite(json.loads(expected)) for unit, expected in rows}


def compared_values(line: Line) -> tuple[str, list[tuple[str, str]]] | None:
    """The facet whose values a line compares, and the pairs of values; None if it compares none.

    "muslim, jewish − christian" is two comparisons.

    Args:
        line: The line.
    """
    arms = (line.about.contrast.first, line.about.contrast.second) if line.about.contrast else ((), ())
    for name, values in line.units.items():
        sides = [[value for value in values if value in side] for side in arms]
        first, second = sides if all(sides) else (values[:1], values[1:] if len(values) == 2 else ())
        if len(values) > 1 and second:
            return name, [(x, y) for x in first for y in second]
    return None


def matched_units(
    columns: Mapping[str, Sequence[Hashable]], facet: str, x: Hashable, y: Hashable
) -> list[tuple[int, int]]:
    """Positions of units that have x and y in the facet and are equal in all others.

    Facets determined by it may differ, such as the category of an identity.

    Args:
        columns: The values of every facet, by unit.
        facet: The facet in which they differ.
        x: Its value on one side.
        y: Its value on the other side.
    """
    others = [values for name, values in columns.items() if name != facet and not _determines(columns[facet], values)]
    keys = list(zip(*others, strict=True)) if others else [()] * len(columns[facet])
    sides = [
        {keys[place]: place for place in compress(range(len(keys)), (each == value for each in columns[facet]))}
        for value in (x, y)
    ]
    return [(place, sides[1][key]) for key, place in sides[0].items() if key in sides[1]]


def _determines(values: Sequence[Hashable], others: Sequence[Hashable]) -> bool:
    """Whether each value always comes with the same value of another facet; None and -1 stand for no value."""
    seen: dict[Hashable, Hashable] = {}
    pairs = zip(values, others, strict=True)
    return all(seen.setdefault(value, other) == other for value, other in pairs if value not in (None, -1))
