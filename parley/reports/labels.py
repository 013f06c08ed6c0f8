"""A run's texts for people to score: a CSV file in random order, without methods, identities and scores.

    parley export RUN --format csv
    parley report RUN --labels FILE.csv          # how far people agree: parley.reports.agreement

A row is a text or a pair, as its judges read it. `item` is a digest that only the run file resolves. Units that
differ only in their label share a row.
"""

from __future__ import annotations

import csv
import hashlib
import io
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from parley.agents import ConfigError
from parley.agents.fencing import fenced_texts
from parley.judging.study import Labelled
from parley.runs import RunFile, explain_damage
from parley.runs.reading import read_unit, template_fields
from parley.runs.studies import labelled_of, measures_of

LAST = Labelled("last", ("quality",), "quality: how good is it, from 0 to 10?")
CHOICE, CHOICES = "preferred", {"A": 1.0, "tie": 0.5, "B": 0.0}
"""The metric of a choice between two answers, and its values as numbers."""
TASKS = ("scenario", "situation", "context", "question", "topic", "prompt", "task")
"""Placeholders of a text's question."""
WRITERS = ("debater", "generator", "chair")
COLUMNS = ("item", "task", "text", "question", "rater")
HIDDEN = "▇▇▇▇"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
Unit: TypeAlias = Mapping[str, Any]
Scales: TypeAlias = Mapping[str, tuple[float, float] | None]
Shown: TypeAlias = tuple[str, int | None, str]
"""A text, with the round and the subject of its verdicts; None and "" for the last round and any subject."""
Fitting: TypeAlias = tuple[Labelled, Sequence[str], Sequence[Shown]]
"""A unit's entry of what people score, with its metrics and texts."""
LINE = 110
"""Length of texts in a list of units."""


class LabelItem(NamedTuple):
    """A text or pair for people to score: its question, their task, and the judges' scores by metric."""

    task: str
    text: str
    question: str
    facets: Mapping[str, str]
    """The facets of the first unit that shows it."""
    judged: dict[str, list[float]]


def label_items(file: RunFile) -> dict[str, LabelItem]:
    """The items of a run that people can score, by id, in the plan's order.

    Args:
        file: The run.
    """
    plan, items = file.info()["plan"], dict[str, LabelItem]()
    done = [row[0] for row in file.rows("SELECT id FROM units WHERE status = 'done' ORDER BY position")[1]]
    for unit, fields, (row, metrics, texts) in _scored(file, done, checked=True):
        hide = _hider(unit)
        filled = "\n\n".join(fields[name] for name in TASKS if name in fields)
        task = hide(filled or _opening(unit) if isinstance(row.shown, str) else filled)
        question = hide(_filled(row.question, unit["facets"]))
        for text, round_, subject in texts:
            item = LabelItem(task, hide(text), question, unit["facets"] | {"unit": unit["id"]}, {})
            content = repr((plan, task, item.text)).encode("utf-8", "surrogatepass")
            item = items.setdefault(hashlib.sha256(content).hexdigest()[:12], item)
            for name in metrics:
                item.judged.setdefault(name, []).extend(_scores(unit, name, round_, subject))
    return items


def _scored(file: RunFile, units: Sequence[str], *, checked: bool) -> Iterator[tuple[Unit, dict[str, str], Fitting]]:
    """Units with the values in their prompts, and their items."""
    declared, prompts = labelled_of(file.info()), dict(file.rows("SELECT name, text FROM prompts")[1])
    for unit_id in units:
        unit = read_unit(file, unit_id, checked=checked)
        fields = _ballot_fields(unit, prompts) if "prompt/single" in prompts else unit["fields"]
        fields = {name: (fenced_texts(text) or [text])[0] for name, text in fields.items()}
        yield unit, fields, next(_fitting(declared, unit, fields))


def first_lines(file: RunFile, units: Sequence[str]) -> dict[str, dict[str, str]]:
    """The first line of each unit's text: the one that people score, or the question if that is JSON.

    Args:
        file: The run.
        units: Their ids.
    """
    lines: dict[str, dict[str, str]] = {}
    for unit, fields, (_, _, texts) in _scored(file, units, checked=False):  # a damaged unit must not hide the others
        text, _, speaker = texts[0] if texts else ("", None, "")
        text = fields.get("question", "") if text.lstrip().startswith("{") else text
        line = " ".join(text.split())
        lines[unit["id"]] = {
            "speaker": speaker,
            "text": line if len(line) <= LINE else f"{line[:LINE].rsplit(' ', 1)[0]} …",
        }
    return lines


def scales_of(file: RunFile, items: Mapping[str, LabelItem]) -> Scales:
    """The judges' scale of each metric that people score; None if unknown.

    Args:
        file: The run.
        items: The items.
    """
    scales = {measure.metric: measure.scale for measure in measures_of(file.info())}
    names = dict.fromkeys(name for item in items.values() for name in item.judged)
    return {name: None if name in (CHOICE, *LAST.metrics) else scales.get(name, scales.get("")) for name in names}


def labels_csv(path: Path, seed: int) -> str:
    """The CSV file: a row for each item, with an empty column for the rater and for each metric.

    Args:
        path: The run file.
        seed: Seed of the order.
    """
    with explain_damage(path), RunFile.open(path) as file:
        items = label_items(file)
        scales = scales_of(file, items)
    if not items:
        raise ConfigError(f"{path} has no finished unit with a text to score")
    words = {name: f"{name} from {ends[0]:g} to {ends[1]:g}" if ends else name for name, ends in scales.items()}
    rows = [
        {"item": key, "task": item.task, "text": item.text}
        | {"question": item.question or "; ".join(words[name] for name in item.judged)}
        for key, item in items.items()
    ]
    random.Random(seed).shuffle(rows)
    return as_csv(rows, (*COLUMNS, *scales))


def as_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows as CSV. A text that a spreadsheet would run as a formula gets an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = (row.get(column) for column in columns)
        writer.writerow("'" + v if isinstance(v, str) and v.startswith(FORMULA_STARTS) else v for v in values)
    return text.getvalue()


def _fitting(declared: Iterable[Labelled], unit: Unit, fields: Mapping[str, str]) -> Iterator[Fitting]:
    """The entry that fits a unit, which has its texts and a verdict on one of its metrics."""
    judged = dict.fromkeys(verdict["metric"] for verdict in unit["verdicts"])
    scored = {verdict["metric"] for verdict in unit["verdicts"] if verdict["value"] is not None} - {"accepted"}
    for row in declared:
        metrics = row.metrics or [name for name in judged if name in scored and not name.startswith("outside_")]
        if any(name in judged for name in metrics) and (texts := _texts(row, unit, fields)):
            yield row, metrics, texts
    # What else is left of a ballot's prompt would show the label.
    yield LAST, LAST.metrics, _texts(LAST, unit, fields) if "wording" not in unit["facets"] else []


def _texts(row: Labelled, unit: Unit, fields: Mapping[str, str]) -> list[Shown]:
    if not isinstance(row.shown, str):
        texts = [fields[name] for name in row.shown if name in fields]
        lettered = [f"{letter}:\n{text}" for letter, text in zip("ABCDEFGH", texts, strict=False)]
        whole = "\n\n".join(lettered if len(texts) > 1 else texts)
        return [(whole, None, "")] if len(texts) == len(row.shown) else []
    written = [message for message in unit["messages"] if message["role"] in WRITERS]
    if row.shown == "statements":
        judged = {(v["round"], v["subject"]) for v in unit["verdicts"] if v["metric"] in row.metrics}
        return [(m["text"], m["round"], m["speaker"]) for m in written if (m["round"], m["speaker"]) in judged]
    if row.shown == "draft":
        drafts = [message for message in written if message["role"] == "generator"]
        decided = [verdict for verdict in unit["verdicts"] if verdict["metric"] == "accepted"]
        accepted = max((verdict["round"] for verdict in decided if verdict["value"] == 1), default=0)
        kept = [draft for draft in drafts if not decided or draft["round"] <= accepted] or drafts[:1]
        return [(draft["text"], draft["round"], "") for draft in kept[-1:]]
    return [(message["text"], None, "") for message in (written[:1] if row.shown == "first" else written[-1:])]


def _scores(unit: Unit, metric: str, round_: int | None, subject: str) -> list[float]:
    """The judges' scores of a text in its round (by default the last), or the chair's."""
    verdicts = [v for v in unit["verdicts"] if v["metric"] == metric and subject in ("", v["subject"])]
    wanted = max((verdict["round"] for verdict in verdicts), default=0) if round_ is None else round_
    final = [verdict for verdict in verdicts if verdict["round"] == wanted]
    final = [verdict for verdict in final if verdict["role"] == "chair"] or final
    values = [CHOICES.get(verdict["text"], verdict["value"]) for verdict in final]
    return [value for value in values if value is not None]


def _filled(question: str, facets: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda name: facets.get(name[1], name[0]), question)


def _opening(unit: Unit) -> str:
    return next((message["text"] for message in unit["messages"] if message["role"] == "narrator"), "")


def _hider(unit: Unit) -> Callable[[str], str]:
    """Hides what people must not see: identities, and the names and roles of speakers."""
    words = {value for key, value in unit["facets"].items() if key.startswith(("identity", "other"))}
    if roster := unit["fields"].get("roster"):
        words.update(re.sub(r"^an? ", "", role) for role in re.findall(r"\(([^()]+)\)", roster))
        words.update(message["speaker"] for message in unit["messages"] if message["role"] == "debater")
    longest_first = sorted(filter(None, words), key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)
    return partial(pattern.sub, HIDDEN) if longest_first else str


def _ballot_fields(unit: Unit, prompts: Mapping[str, str]) -> dict[str, str]:
    """The situation and answers of a ballot, found by the stored wordings."""
    facets = unit["facets"]
    kind = "pair" if {"response_a", "flawed", "other"} & facets.keys() else "single"
    label, templates = prompts.get(f"label/{facets.get('wording', '')}", ""), []
    names = [f"question/{facets.get('question', '')}/{form}" for form in (kind, f"{kind}_ties", "metric")]
    forms = [prompts[name] for name in (*names, "talk/first", "talk/first_pair") if name in prompts]
    forms += [form.replace("\n{metrics}", "") for form in forms]  # one overall score has no list of metrics
    # The run stores a label's words, but not where they stand.
    places = ("{label}\n{text}", "{label}\n{heading}\n{text}", "{heading}\n{text}\n\n{label}")
    for place in places if label else ("{heading}\n{text}",):
        whole = prompts.get(f"prompt/{kind}", "")
        for side in ("_a", "_b") if kind == "pair" else ("",):
            called = prompts.get(f"prompt/answer{side}", "")
            heading = prompts.get("prompt/heading", "").replace("{answer}", called)
            block = place.replace("{heading}", heading).replace("{text}", f"{{response{side}}}")
            whole = whole.replace(f"{{answer{side}}}", block.replace("{label}", label.replace("{answer}", called)))
        templates += [whole.replace("{question}", form) for form in forms]
    return template_fields(_opening(unit), templates)
