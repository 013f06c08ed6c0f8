"""How lines are named: what `parley report RUN --lines` lists, and what `parley check --require` accepts.

A line's own `name` is used where its report gave one ("gender"). Otherwise a name is, with dots between its parts: what
the line is about, the question, the measure if the question has several, and what its label says: "ambiguous.accuracy",
"scores.f1.answerable", "ambiguous.bias-against-default.cot". What all lines of a question share is left out, and so is
"all". With several models in the report, the model stands in front.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import count

from parley.analysis.reporting.forest import Forest
from parley.analysis.stats.results import Line
from parley.base.errors import ConfigError

WHOLE = ("", "all", "macro mean")
"""Values that stand for all of a column, and are left out of names."""
ARMS = ("first", "second")


def named_lines(forests: Iterable[Forest]) -> dict[str, tuple[Line, Forest]]:
    """Every line by its name, with the plot it is in.

    Args:
        forests: The plots, in order.
    """
    asked: dict[str, list[tuple[Line, Forest]]] = {}
    for forest in forests:
        asked.setdefault(forest.table or forest.name, []).extend((line, forest) for line in forest.lines)
    models = {line.about["model"] for own in asked.values() for line, _ in own if "model" in line.about}
    named: dict[str, tuple[Line, Forest]] = {}
    for question, own in asked.items():
        lines = [line for line, _ in own]
        plots = len({forest.name for _, forest in own}) > len({line.measure for line in lines})
        told = _telling(lines)
        for line, forest in own:
            parts = [line.name] if line.name else _parts(line, forest.name if plots else question, told)
            model = str(line.about.get("model", "")) if len(models) > 1 else ""
            name = ".".join(filter(None, map(slug, (model, *parts))))
            taken = name in named
            others = (f"{name}.{slug(line.label)}{f'-{number}' if number > 1 else ''}" for number in count(1))
            named[next(other for other in others if other not in named) if taken else name] = line, forest
    return named


def _columns(line: Line) -> dict[str, str]:
    """What a line is about, by column; a line that has no columns has its group's parts and its label."""
    about = {key: str(value) for key, value in line.about.items() if key != "model" and not isinstance(value, bool)}
    groups = [part.rpartition(": ")[2] for part in line.group.split(" · ")]
    return about or {**{f"group {place}": part for place, part in enumerate(groups)}, "label": line.label}


def _telling(lines: Sequence[Line]) -> dict[str, bool]:
    """The columns that tell a question's lines apart, and whether they stand behind the question, as labels do."""
    rows = [_columns(line) | {"measure": line.measure} for line in lines]
    told = {}
    for key in dict.fromkeys(key for row in rows for key in row):
        if len({row.get(key) for row in rows}) > 1:
            values = [(row[key], line.label) for row, line in zip(rows, lines, strict=True) if key in row]
            told[key] = all(value in label for value, label in values if value not in WHOLE)
    if "measure" in told and "label" in told:
        without = [tuple(value for key, value in row.items() if key != "label") for row in rows]
        told = {key: behind for key, behind in told.items() if key != "label" or len(set(without)) < len(rows)}
    return told


def _parts(line: Line, question: str, told: dict[str, bool]) -> list[str]:
    columns = {key: value for key, value in _columns(line).items() if key in told and value not in WHOLE}
    arms = " ".join(columns.pop(arm) for arm in ARMS if arm in columns)
    named = {key: value if re.search("[a-zA-Z]", value) else f"{key} {value}" for key, value in columns.items()}
    measure = [line.measure] if "measure" in told and line.measure != question else []
    before, behind = (
        [part for key, part in named.items() if told[key] == side and slug(part) not in map(slug, measure)]
        for side in (False, True)
    )
    return [*before, question, *measure, arms, *behind]


def slug(text: str) -> str:
    """Words for a name that can be typed: "female − male" is female-male."""
    return re.sub(r"[^a-z0-9/.]+", "-", text.lower()).strip("-.")


def find_name(name: str, known: Iterable[str], study: str = "") -> str:
    """The name as it is listed, whether or not the study stands in front; a ConfigError names the nearest three.

    Args:
        name: What was typed.
        known: The names that there are.
        study: The study of the run.
    """
    names = {each.lower(): each for each in known}
    typed = name.lower() if name.lower() in names else name.lower().removeprefix(f"{study}.")
    if typed in names:
        return names[typed]
    nearest = ", ".join(names[each] for each in get_close_matches(typed, names, 3, 0.0))
    raise ConfigError(f"no line is called '{name}' ({f'nearest: {nearest}' if nearest else 'there are no lines'})")
