"""One unit read whole: facets, messages with what was parsed, calls, verdicts, and the parts its prompt was made of."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from parley.runs import RunFile
from parley.viewer.library import NotHere, facets_of

READABLE = 200_000
"""Longer openings are not taken apart into their template's fields."""


def unit_whole(file: RunFile, unit: str) -> dict[str, Any]:
    columns, rows = file.rows(
        "SELECT id, position, facets, status, error, stop_reason, started_at, finished_at FROM units WHERE id = ?",
        (unit,),
    )
    if not rows:
        raise NotHere(f"there is no unit '{unit}' in this run")
    found = dict(zip(columns, rows[0], strict=True))
    file.check_unit(unit)
    found["facets"] = facets_of(found["facets"])
    found["messages"] = _messages(file, unit)
    columns, rows = file.rows(
        "SELECT judge, role, round, subject, metric, value, sampled, text, status FROM verdicts "
        "WHERE unit = ? ORDER BY nth",
        (unit,),
    )
    found["verdicts"] = [dict(zip(columns, row, strict=True)) for row in rows]
    opening = next((one["text"] for one in found["messages"] if one["role"] == "narrator"), "")
    found["fields"] = template_fields(opening, [row[0] for row in file.rows("SELECT text FROM prompts")[1]])
    return found


def _messages(file: RunFile, unit: str) -> list[dict[str, Any]]:
    columns, rows = file.rows(
        "SELECT seq, round, speaker, role, persona, text, parse_status, parsed, expected FROM transcript "
        "WHERE unit = ? ORDER BY seq",
        (unit,),
    )
    messages = [dict(zip(columns, row, strict=True)) for row in rows]
    calls: dict[int, list[dict[str, Any]]] = {}
    columns, rows = file.rows(
        "SELECT seq, nth, model, prompt, prompt_tokens, completion_tokens, latency, cost, cached, attempts, "
        "cached_tokens FROM calls WHERE unit = ? ORDER BY seq, nth",
        (unit,),
    )
    for row in rows:
        call = dict(zip(columns, row, strict=True))
        # As text: the ids have 63 bits, and JavaScript's numbers 53.
        call["prompt"] = [[role, source, str(text)] for role, source, text in json.loads(call["prompt"])]
        calls.setdefault(call.pop("seq"), []).append(call)
    for message in messages:
        for key in ("parsed", "expected"):
            message[key] = json.loads(message[key]) if message[key] else None
        message["calls"] = calls.get(message["seq"], [])
    return messages


def texts(file: RunFile, ids: Iterable[str]) -> dict[str, str]:
    """Texts by their ids, as prompts refer to them."""
    wanted = sorted({int(one) for one in ids if one.isdecimal() and len(one) < 20})
    found: dict[str, str] = {}
    for start in range(0, len(wanted), 500):
        part = wanted[start : start + 500]
        marks = ",".join("?" * len(part))
        found |= {
            str(key): text for key, text in file.rows(f"SELECT id, text FROM texts WHERE id IN ({marks})", part)[1]
        }
    return found


def template_fields(text: str, templates: Sequence[str]) -> dict[str, str]:
    """What was put into the prompt's placeholders, found by laying the run's own templates over the text.

    The longest template that fits wins. Literal parts are looked for from left to right, so the cost is linear
    whatever the text holds.
    """
    best: tuple[int, dict[str, str]] = (0, {})
    if len(text) <= READABLE:
        for template in templates:
            fields = _laid_over(text, template)
            if fields and len(template) > best[0]:
                best = (len(template), fields)
    return best[1]


def _laid_over(text: str, template: str) -> dict[str, str]:
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError:
        return {}
    fields: dict[str, str] = {}
    at, waiting = 0, None
    for literal, name, _, _ in parts:
        found = text.find(literal, at) if literal else at
        if found < 0 or (waiting is None and found != at):
            return {}
        if waiting is not None:
            fields[waiting] = text[at:found]
        at, waiting = found + len(literal), name
    if waiting is not None:
        fields[waiting] = text[at:]
    elif at != len(text):
        return {}
    return fields


def excerpts(file: RunFile, units: Sequence[str], terms: Sequence[str], *, asked: bool) -> dict[str, dict[str, Any]]:
    """For each unit the first message with one of the terms, and the words around it."""
    if not units or not terms:
        return {}
    marks = ",".join("?" * len(units))
    _, rows = file.rows(
        f"SELECT unit, seq, speaker, role, text FROM transcript WHERE unit IN ({marks}) ORDER BY unit, seq", units
    )
    needles = [term.casefold() for term in terms]
    found: dict[str, dict[str, Any]] = {}
    for unit, seq, speaker, role, text in rows:
        if unit in found or (role == "narrator" and not asked):
            continue
        folded = text.casefold()
        places = [place for needle in needles if (place := folded.find(needle)) >= 0]
        if places:
            start = max(0, min(places) - 60)
            found[unit] = {"seq": seq, "speaker": speaker, "text": text[start : start + 200], "cut": start > 0}
    return found


def masked(fields: Mapping[str, str], facets: Mapping[str, str]) -> dict[str, str]:
    """The fields a rater may see: no labels, no instructions."""
    hidden = [value for key, value in facets.items() if key.startswith(("identity", "other")) and value]
    shown = {}
    for name, text in fields.items():
        if name.startswith(("candidate", "label", "identity")) or name in ("metrics", "format"):
            continue
        shown[name] = blotted(text, hidden)
    return shown


def blotted(text: str, words: Iterable[str]) -> str:
    """The text with the words blacked out, wherever they stand as words."""
    for word in sorted(set(words), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", "▇" * 4, text, flags=re.IGNORECASE)
    return text
