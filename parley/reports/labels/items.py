"""What a person sees of a unit: the task, one or more texts without identities or instructions, and what is asked.

A study declares what is shown and asked (`judging/labelled.py`). A label can only be compared with a verdict if both
answer the same question about the same text: so items are built from a unit's roles and the values in its prompt, not
from the prompt's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import ValidationError

from parley.agents import ConfigError, seed_from
from parley.agents.fencing import fenced_texts
from parley.judging.labelled import SCALE, Labelled, LabelMetric
from parley.judging.scoring.rubrics import Rubric
from parley.runs import RunFile
from parley.runs.reading import read_words, template_fields
from parley.runs.studies import labelled_of

PREFERRED = "preferred"
PAIR_VALUES = {"A": 1.0, "B": 0.0, "tie": 0.5}
"""A choice between two answers as the share of the first."""
REDACTED = "▇▇▇▇"
Task = tuple[tuple[str, str], ...]
"""What the texts answer, as (title, text)."""
Show = Callable[[str], str]
"""Makes a text as a rater sees it."""
Unit = Mapping[str, Any]
"""A unit as `read_words` gives it."""
Fields = Mapping[str, str]
"""The values in the unit's prompt, by placeholder."""


@dataclass(frozen=True, slots=True)
class LabelText:
    """A text to rate: the subject of the verdicts about it, and what the rater sees."""

    subject: str
    title: str
    text: str


class Question(NamedTuple):
    """One thing that is asked about an item: a score of one of its texts, or with `metric` None its choice."""

    subject: str
    name: str
    metric: LabelMetric | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelItem:
    """One item to label.

    Args:
        task: What the texts answer.
        texts: The texts to rate, in the order shown.
        metrics: The scores to give to each text.
        choice: The metric of a choice between the options; empty if none is asked for.
        question: What the rater chooses by.
        options: The options as (value, words).
        round: The round of the verdicts on these texts; None for the last.
    """

    task: Task = ()
    texts: tuple[LabelText, ...] = ()
    metrics: tuple[LabelMetric, ...] = ()
    choice: str = ""
    question: str = ""
    options: tuple[tuple[str, str], ...] = ()
    round: int | None = None

    @property
    def is_pair(self) -> bool:
        return self.choice == PREFERRED

    def questions(self) -> list[Question]:
        """What is asked about it, in order: the choice, then each metric of each text."""
        scores = [Question(text.subject, metric.name, metric) for metric in self.metrics for text in self.texts]
        return [*([Question("", self.choice, None)] if self.choice else []), *scores]

    def page(self) -> dict[str, Any]:
        """The item as the page gets it. Texts are numbered: a subject can be a speaker's name, and so an identity."""
        return {
            "pair": self.is_pair,
            "task": [{"title": title, "text": text} for title, text in self.task],
            "texts": [{"title": text.title, "text": text.text} for text in self.texts],
            "metrics": [
                {"name": metric.name, "questions": metric.questions, "low": metric.low, "high": metric.high}
                for metric in self.metrics
            ],
            "choice": {"question": self.question, "options": self.options} if self.choice else None,
            "scale": SCALE,
        }


QUALITY = LabelMetric(name="Quality", questions=("How good is the text overall?",), scale=None)
TITLES = {
    "scenario": "Situation",
    "situation": "Situation",
    "context": "Context",
    "question": "Question",
    "topic": "Topic",
    "prompt": "Beginning of the sentence",
    "task": "Task",
}
LAST = Labelled("last")
WRITERS = ("debater", "generator", "chair")
_LABEL = re.compile(r"\(([^()\n]+)\):")


def label_item(file: RunFile, unit_id: str, *, blind: bool = True) -> LabelItem:
    """What is rated of a unit; raises if anything of it was changed since it was written.

    Args:
        file: The run.
        unit_id: The unit.
        blind: Whether identities and speakers are hidden; a dataset of labelled texts needs them as they are.
    """
    file.check_unit(unit_id)
    return LabelItems(file, blind=blind).of(unit_id)


class LabelItems:
    """What is rated of the units of a run. What they share is read once: of 100,000 units, it was most of the work.

    Args:
        file: The run.
        blind: As in `label_item`.
    """

    def __init__(self, file: RunFile, *, blind: bool = True) -> None:
        self._file, self._blind = file, blind
        self._declared = (*labelled_of(file.info()), LAST)
        self._prompts = dict(file.rows("SELECT name, text FROM prompts")[1])
        self._worded: dict[tuple[str, ...], list[str]] = {}

    @cached_property
    def _rubric(self) -> tuple[LabelMetric, ...]:
        return run_metrics(self._file)

    def of(self, unit_id: str) -> LabelItem:
        """What is rated of a unit, which is not compared with its checksums."""
        unit = read_words(self._file, unit_id, list(self._prompts.values()))
        if unit["facets"].get("stage") == "silent":
            fields = self._silent_fields(unit)
            if not fields.keys() & {"response", "response_a"}:
                return LabelItem()  # nothing to rate: what is left of the prompt would show the label, or the verdict
        else:
            fields = {name: unfenced(text) for name, text in unit["fields"].items()}
        show = Hidden.of(unit).hide if self._blind else str
        for row in self._declared:
            if row.where and not any(verdict["metric"] == row.where for verdict in unit["verdicts"]):
                continue
            found = SHOWN[row.shown if isinstance(row.shown, str) else "fields"](row, unit, fields)
            if not found.texts and not found.options:
                continue
            metrics = self._rubric if row.metrics == "rubric" else _metrics(row, unit, show)
            return replace(
                found,
                task=tuple((title, show(text)) for title, text in found.task or _task(fields)),
                texts=tuple(replace(text, text=show(text.text)) for text in found.texts),
                metrics=found.metrics or metrics or (() if row.choice else (QUALITY,)),
                choice=("answer" if found.options else PREFERRED) if row.choice else "",
                question=row.choice,
                options=found.options or (tuple(zip(PAIR_VALUES, row.options, strict=True)) if row.choice else ()),
            )
        return LabelItem()

    def _silent_fields(self, unit: Unit) -> dict[str, str]:
        """The situation and the answers of a silent ballot, by name; empty if its prompt is not as its wordings say."""
        facets = unit["facets"]
        kind = "pair" if "response_a" in facets else "single"
        wordings = kind, facets.get("wording", ""), facets.get("question", "")
        if wordings not in self._worded:
            self._worded[wordings] = list(_silent_templates(self._prompts, *wordings))
        task = next((message["text"] for message in unit["messages"] if message["role"] == "narrator"), "")
        return template_fields(task, self._worded[wordings])


@dataclass(frozen=True, slots=True)
class Hidden:
    """What raters must not see: words that are blacked out, and names that are replaced."""

    words: tuple[str, ...]
    names: Mapping[str, str]

    @classmethod
    def of(cls, unit: Unit) -> Hidden:
        """The identities of a unit, from its facets and its candidates' labels, and its speakers' roles."""
        facets = unit["facets"].items()
        words = [value for key, value in facets if key.startswith(("identity", "other")) and value]
        for name, text in unit["fields"].items():
            if name.startswith("candidate"):
                words += _LABEL.findall(text)
        speakers = dict.fromkeys(message["speaker"] for message in unit["messages"] if message["role"] == "debater")
        # "Sixty (a 60-year-old), Twenty (…)": the roles as the debate's task lists them.
        for role in re.findall(r"\(([^()]+)\)", unit["fields"].get("roster", "")):
            words.append(re.sub(r"^an? ", "", role))
        names = (
            {name: f"Speaker {number}" for number, name in enumerate(speakers, 1)} if "roster" in unit["fields"] else {}
        )
        return cls(tuple(words), names)

    def hide(self, text: str) -> str:
        """The text as a rater sees it."""
        text = redact(text, self.words)
        for name in sorted(self.names, key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", self.names[name], text)
        return text


def redact(text: str, words: Iterable[str]) -> str:
    """The text with the words blacked out, as whole words only."""
    for word in sorted(set(words), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", REDACTED, text, flags=re.IGNORECASE)
    return text


def unfenced(text: str) -> str:
    """The text without the marks that show it to a model as data."""
    texts = fenced_texts(text)
    return texts[0] if len(texts) == 1 and text.lstrip().startswith("<<<") else text


def _silent_templates(prompts: Mapping[str, str], kind: str, wording: str, question: str) -> Iterator[str]:
    """The templates of a silent ballot's prompt: its own wordings, as the run stores them, put together."""
    label = prompts.get(f"label/{wording}", "")
    # The run stores a label's words, but not where they stand.
    places = ("{label}\n{text}", "{label}\n{heading}\n{text}", "{heading}\n{text}\n\n{label}")
    for place in places if label else ("{heading}\n{text}",):
        whole = prompts.get(f"prompt/{kind}", "")
        for side in ("_a", "_b") if kind == "pair" else ("",):
            called = prompts.get(f"prompt/answer{side}", "")
            heading = prompts.get("prompt/heading", "").replace("{answer}", called)
            block = place.replace("{heading}", heading).replace("{text}", f"{{response{side}}}")
            whole = whole.replace(f"{{answer{side}}}", block.replace("{label}", label.replace("{answer}", called)))
        for asked in (kind, f"{kind}_ties", "metric"):
            yield whole.replace("{question}", prompts.get(f"question/{question}/{asked}", "{question}"))


def run_metrics(file: RunFile) -> tuple[LabelMetric, ...]:
    """The metrics of the run's rubric as it is stored, or one overall score if it has none."""
    config = file.info().get("config") or {}
    stored = file.rows("SELECT text FROM prompts WHERE name = 'rubric'")[1]
    try:
        metrics = Rubric.model_validate_json(stored[0][0]).only(config.get("metrics")).metric
    except (ConfigError, IndexError, ValidationError):
        return (QUALITY,)
    scales = {measure["metric"]: measure["scale"] for measure in file.info().get("measures") or ()}
    return tuple(
        LabelMetric(name=metric.name, questions=metric.questions, scale=tuple(scales.get(metric.name) or SCALE))
        for metric in metrics
    )


def _metrics(row: Labelled, unit: Unit, show: Show) -> tuple[LabelMetric, ...]:
    """What is asked about each text, in words of the unit."""
    if not isinstance(row.metrics, str):
        return tuple(
            replace(metric, questions=tuple(show(_filled(question, unit["facets"])) for question in metric.questions))
            for metric in row.metrics
        )
    words = {metric.name: metric for metric in row.words}
    scored = dict.fromkeys(v["metric"] for v in unit["verdicts"] if v["role"] == "evaluator" and v["value"] is not None)
    return tuple(
        words.get(name) or LabelMetric(name=name, questions=(), scale=None)
        for name in scored
        if not name.startswith("outside_")
    )


def _filled(question: str, facets: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda name: facets.get(name[1], name[0]), question)


def _fields(row: Labelled, unit: Unit, fields: Fields) -> LabelItem:
    found = [fields[name] for name in row.shown if name in fields]
    return _lettered(row, found) if len(found) == len(row.shown) else LabelItem()


def _answers(row: Labelled, unit: Unit, fields: Fields) -> LabelItem:
    texts = [m["text"] for m in unit["messages"] if m["role"] == "debater" and not m["parsed"]][:2]
    return _lettered(row, texts) if len(texts) == 2 else LabelItem()


def _lettered(row: Labelled, texts: Sequence[str]) -> LabelItem:
    """One text, or several that verdicts call A, B, …"""
    if len(texts) == 1:
        return LabelItem(texts=(LabelText("", row.title, texts[0]),))
    return LabelItem(texts=tuple(LabelText(s, f"{row.title} {s}", t) for s, t in zip("ABCDEFGH", texts, strict=False)))


def _sheet(row: Labelled, unit: Unit, fields: Fields) -> LabelItem:
    """A text of the study `rubric`: its prompt has the metrics, and then the context with nothing between them."""
    if not {"text", "metrics"} <= fields.keys():
        return LabelItem()
    names = re.findall(r'"(\w+)":', fields.get("format", ""))
    metrics: list[LabelMetric] = []
    context: list[str] = []
    for block in re.split(r"\n(?!- )", f"{fields['metrics']}\n{fields.get('context', '')}"):
        name, *questions = block.split("\n- ")
        if name in names and not context:
            metrics.append(LabelMetric(name=name, questions=tuple(questions), low="", high=""))
        elif name.strip() not in ("", "Context:"):
            context.append(block)
    task = (("Context", "\n".join(context)),) if context else ()
    return LabelItem(task=task, texts=(LabelText("", row.title, fields["text"]),), metrics=tuple(metrics))


def _options(row: Labelled, unit: Unit, fields: Fields) -> LabelItem:
    """The options of a question as shown, each with its number in the published order."""
    order = unit["facets"].get("order", "012")
    for keys in (("a", "b", "c"), ("ans0", "ans1", "ans2")):
        if {"context", "question", *keys} <= fields.keys():
            return LabelItem(options=tuple((order[place], fields[key].strip()) for place, key in enumerate(keys)))
    return LabelItem()


def _statements(row: Labelled, unit: Unit, fields: Fields) -> LabelItem:
    """The statements of one round that were scored; which round is drawn by the unit's id."""
    asked = {metric.name for metric in row.metrics if isinstance(metric, LabelMetric)}
    subjects = {verdict["subject"] for verdict in unit["verdicts"] if verdict["metric"] in asked}
    said = [message for message in unit["messages"] if message["role"] == "debater" and message["speaker"] in subjects]
    rounds = sorted({message["round"] for message in said})
    drawn = rounds[seed_from("round", unit["id"]) % len(rounds)] if rounds else None
    texts = [(message["speaker"], message["text"]) for message in said if message["round"] == drawn]
    numbered = enumerate(texts, 1)
    return LabelItem(texts=tuple(LabelText(who, f"{row.title} {n}", text) for n, (who, text) in numbered), round=drawn)


def _first(row: Labelled, unit: Unit, fields: Fields) -> LabelItem:
    return _reply(row, unit, fields, [message for message in unit["messages"] if message["role"] in WRITERS][:1])


def _last(row: Labelled, unit: Unit, fields: Fields) -> LabelItem:
    return _reply(row, unit, fields, [message for message in unit["messages"] if message["role"] in WRITERS][-1:])


def _given(row: Labelled, unit: Unit, fields: Fields) -> LabelItem:
    given = [message["text"] for message in unit["messages"] if message["role"] == "narrator"]
    return LabelItem(texts=tuple(LabelText("", row.title, text) for text in given))


def _draft(row: Labelled, unit: Unit, fields: Fields) -> LabelItem:
    """The last draft that was accepted, or the last one where a loop accepts none."""
    drafts = [message for message in unit["messages"] if message["role"] == "generator"]
    decided = [verdict for verdict in unit["verdicts"] if verdict["metric"] == "accepted"]
    if decided:
        accepted = max((verdict["round"] for verdict in decided if verdict["value"] == 1), default=0)
        drafts = [message for message in drafts if message["round"] <= accepted] or drafts[:1]
    return replace(_reply(row, unit, fields, drafts[-1:]), round=drafts[-1]["round"] if drafts else None)


def _reply(row: Labelled, unit: Unit, fields: Fields, messages: Sequence[Mapping[str, Any]]) -> LabelItem:
    """A reply, and what was asked for it."""
    asked = [message["text"] for message in unit["messages"] if message["role"] == "narrator"]
    task = _task(fields) or tuple(("Task", text) for text in asked[:1])
    return LabelItem(task=task, texts=tuple(LabelText("", row.title, _words(message)) for message in messages))


def _words(message: Mapping[str, Any]) -> str:
    """A reply in words: the strings of a parsed one, otherwise its text."""
    parsed = message["parsed"]
    if not isinstance(parsed, dict) or not message["text"].lstrip().startswith("{"):
        return str(message["text"])
    strings = [value for value in parsed.values() if isinstance(value, str)]
    return "\n\n".join(strings) or str(message["text"])


def _task(fields: Fields) -> Task:
    return tuple((title, fields[name]) for name, title in TITLES.items() if fields.get(name, "").strip())


SHOWN: dict[str, Callable[[Labelled, Unit, Fields], LabelItem]] = {
    "fields": _fields,
    "answers": _answers,
    "draft": _draft,
    "first": _first,
    "given": _given,
    "last": _last,
    "options": _options,
    "sheet": _sheet,
    "statements": _statements,
}
"""How each kind of text is found in a unit; an item without texts and options where the unit has none."""
