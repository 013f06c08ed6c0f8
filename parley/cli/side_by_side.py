"""Two units turn by turn, with their scores, and words marked that only one of them has.

It shows what a label changed: the same answer under two labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from parley.base.text import in_words, signed, visible
from parley.cli.command import Answer

MOST_MARKED = 1 / 3
"""Maximum share of a side's words that are marked; with more on both sides, marks would be useless."""
CONTEXT = 12
"""Words shown before and after a difference between two long tasks."""
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
Unit = Mapping[str, Any]
Message = Mapping[str, Any]


def align(first: Unit, second: Unit) -> Iterator[tuple[Message | None, Message | None]]:
    """The messages of two units in rows, matched by speaker and round."""
    sides = first["messages"], second["messages"]
    a, b = ([(turn["role"], turn["speaker"], turn["round"]) for turn in side] for side in sides)
    for kind, start, end, other_start, other_end in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        left, others = sides[0][start:end], sides[1][other_start:other_end]
        alone = [*((turn, None) for turn in left), *((None, turn) for turn in others)]
        yield from zip(left, others, strict=True) if kind == "equal" else alone


def scores(first: Unit, second: Unit, row: Sequence[Message | None]) -> list[dict[str, Any]]:
    """The scores of a row's messages, side by side."""
    table: dict[tuple[str, str, str], list[float | None]] = {}
    for side, (unit, message) in enumerate(zip((first, second), row, strict=True)):
        for verdict in unit["verdicts"] if message else ():
            if message and verdict["seq"] == message["seq"] and verdict["value"] is not None:
                judge = "" if verdict["judge"] == message["speaker"] else verdict["judge"]
                table.setdefault((judge, verdict["subject"], verdict["metric"]), [None, None])[side] = verdict["value"]
    return [
        {"judge": judge, "subject": subject, "metric": metric, "values": values}
        for (judge, subject, metric), values in table.items()
    ]


def side_by_side(first: Unit, second: Unit) -> Answer:
    """Both units, for the terminal and as data."""
    rows = [(row, scores(first, second, row)) for row in align(first, second)]
    turns = [
        {
            "speaker": next(turn["speaker"] for turn in row if turn),
            "round": next(turn["round"] for turn in row if turn),
            "texts": [turn and turn["text"] for turn in row],
            "scores": read,
        }
        for row, read in rows
    ]
    units = [{key: unit[key] for key in ("id", "status", "facets")} for unit in (first, second)]
    return Answer({"units": units, "turns": turns}, _lines(first, second, rows))


def _lines(
    first: Unit, second: Unit, rows: Sequence[tuple[Sequence[Message | None], list[dict[str, Any]]]]
) -> Iterator[Any]:
    names = [name for name in {**first["facets"], **second["facets"]} if _facet(first, name) != _facet(second, name)]
    yield Rule(_text("side by side", "bold"))
    yield _columns(*(Text.assemble((visible(unit["id"]), "bold")) for unit in (first, second)))
    yield _columns(*(_text("  ".join(f"{name}={_facet(unit, name)}" for name in names)) for unit in (first, second)))
    yield _text("[…]: words that only one side has", "dim")
    seen = set()
    for row, read in rows:
        turn = next(turn for turn in row if turn)
        texts = tuple(_shown_text(turn) for turn in row)
        if turn["role"] == "narrator" and (texts in seen or texts[0] == texts[1]):
            continue  # the same instructions again, or on both sides
        seen.add(texts)
        yield Text()
        narrated = turn["role"] == "narrator"
        who = "prompt" if narrated else turn["speaker"]
        place = "silent ballot" if turn["expected"] else f"round {turn['round']}"
        yield _text(f"{who}  ({place})", "dim" if narrated else "bold cyan")
        yield from _texts(texts, shortened=narrated)
        for score in read:
            kind = "expected" if turn["expected"] else ""
            yield _columns(*(_text(text, "dim") for text in _score_texts(score, kind)))


def _facet(unit: Unit, name: str) -> str:
    return str(unit["facets"].get(name, ""))


def _shown_text(turn: Message | None) -> str | None:
    """A message's text; for a parsed reply its words, since scores are shown below.

    A silent ballot's text is only its likeliest reply, or those that were sampled; its score is the mean of all.
    """
    if turn is None:
        return None
    if turn["expected"]:
        return f"{'replies' if ', ' in turn['text'] else 'likeliest reply'}: {turn['text']}"
    return (in_words(turn["text"], turn["parsed"]) if turn["parsed"] else "") or str(turn["text"])


def _texts(texts: Sequence[str | None], *, shortened: bool) -> Iterator[Text | Table]:
    first, second = texts
    if first == second:
        yield _text(f"both: {first}")
    elif first is None or second is None:
        yield _columns(*(_text("no message here", "dim") if text is None else _text(text) for text in texts))
    else:
        yield _columns(*marked(first, second, shortened=shortened))


def marked(first: str, second: str, *, shortened: bool = False) -> tuple[Text, Text]:
    """Two texts, with words that only one has in brackets; without brackets if most words differ.

    Args:
        first: A text.
        second: Another.
        shortened: Shorten common passages to a few words around each difference.
    """
    words = [_WORDS.findall(visible(text)) for text in (first, second)]
    matches = SequenceMatcher(None, words[0], words[1], autojunk=False).get_opcodes()
    same = sum(end - start for kind, start, end, _, _ in matches if kind == "equal")
    if all(same < (1 - MOST_MARKED) * len(side) for side in words):
        return _text(first), _text(second)
    sides = Text(), Text()
    for place, (kind, *ends) in enumerate(matches):
        for side, tokens, (start, end) in zip(sides, words, (ends[:2], ends[2:]), strict=True):
            piece = tokens[start:end]
            if kind != "equal" and piece:
                side.append(f"[{''.join(piece)}]", "bold")
            elif shortened and len(piece) > 2 * CONTEXT:
                before = piece[:CONTEXT] if place else []
                after = piece[-CONTEXT:] if place < len(matches) - 1 else []
                side.append(f"{''.join(before)} … {''.join(after)}")
            else:
                side.append("".join(piece))
    return sides


def _score_texts(score: Mapping[str, Any], kind: str) -> Iterator[str]:
    name = " ".join(part for part in (kind, score["judge"], score["subject"], score["metric"]) if part)
    first, second = score["values"]
    difference = "" if None in (first, second) else f"  ({signed(second - first)})"
    for value, after in ((first, ""), (second, difference)):
        yield f"{name} {'–' if value is None else f'{value:.2f}'.removesuffix('.00')}{after}"


def _columns(first: Text, second: Text) -> Table:
    grid = Table.grid(padding=(0, 2), expand=True)
    grid.add_column(ratio=1)
    grid.add_column(ratio=1)
    grid.add_row(first, second)
    return grid


def _text(text: str, style: str = "") -> Text:
    return Text(visible(text), style=style)
