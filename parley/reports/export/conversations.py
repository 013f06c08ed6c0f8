"""Statements of any run: what debaters and generators wrote, with the score that a judge or a person gave it.

The drafts and revisions of a critique, STARDTOX's and MABRF's texts before and after, the statements of a debate of
your own, and texts that people labelled in the viewer: all become rows in the same way as RLDF's debates. The prompt is
the conversation's opening, and a pair stays within one conversation.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from parley.agents import ConfigError
from parley.agents.structured import looks_like_refusal
from parley.base.redaction import HiddenAddresses
from parley.judging.rldf.statements import loops, words_of
from parley.reports.export.settings import Settings
from parley.reports.export.statements import Statement
from parley.runs import RunFile

WRITERS = ("debater", "generator")
CHECKED_FLAGS = ("refused", "loop")
"""The flags that can be set without RLDF's verdicts."""
KINDS = ("bias", "category", "set")
"""The facets that may name the kind of a conversation, for the counts of the card."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A run file that is being read, and how the run is named in the dataset."""

    file: RunFile
    run: str
    run_id: str
    study: str
    addresses: HiddenAddresses

    def units(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The finished units with their facets."""
        for unit, text in self.file.rows("SELECT id, facets FROM units WHERE status = 'done' ORDER BY position")[1]:
            yield unit, self.addresses.hide(json.loads(text))

    def statement(self, unit: str, facets: dict[str, Any], **values: Any) -> Statement:
        """A statement of a unit; `values` are its text, prompt, speaker, round, score and so on."""
        conversation = f"{self.run_id}/{self.addresses.hide(unit)}"
        text = str(values["text"]).strip()
        checks = (looks_like_refusal(text), loops(words_of(text)))
        flags = [flag for flag, is_set in zip(CHECKED_FLAGS, checks, strict=True) if is_set]
        prompt = self.addresses.hide(values["prompt"])
        usual = {
            "id": f"{conversation}/{values['round']}/{values['speaker']}",
            "debate": conversation,
            "run": self.run,
            "run_id": self.run_id,
            "bias": next((str(facets[kind]) for kind in KINDS if kind in facets), self.study),
            "topic": str(facets.get("topic") or prompt),
            "topic_id": str(facets.get("topic_id", "")),
            "mode": str(facets.get("method", "")),
            "student": "",
            "model": "",
            "rank": None,
            "status": "ok" if values["score"] is not None else "unparsed",
            "score_again": None,
            "flags": tuple(flags),
            "others": (),
        }
        return Statement(**{**usual, **values, "text": text, "prompt": prompt})


def judged(run: Opened, settings: Settings) -> Iterator[Statement]:
    """What was written in the units that have the metric, with the mean of the judges' scores of it.

    A score is a verdict about the speaker (its subject) in that round, or about the whole round if one text was written
    in it. ConfigError if the run has no such score.
    """
    scores: dict[tuple[str, int, str], list[float | None]] = {}
    for unit, round, subject, value in run.file.rows(
        "SELECT unit, round, subject, value FROM verdicts WHERE metric = ? ORDER BY unit, nth", (settings.metric,)
    )[1]:
        scores.setdefault((unit, round, subject), []).append(value)
    scored_units = {unit for unit, _, _ in scores}
    found = False
    for unit, facets in run.units():
        if unit not in scored_units:
            continue
        turns = run.file.rows(
            "SELECT t.round, t.speaker, t.role, t.text, c.model FROM transcript t LEFT JOIN calls c "
            "ON c.unit = t.unit AND c.seq = t.seq AND c.nth = 0 WHERE t.unit = ? ORDER BY t.seq",
            (unit,),
        )[1]
        prompt = next((text for _, _, role, text, _ in turns if role == "narrator"), "")
        written = [turn for turn in turns if turn[2] in WRITERS]
        for round, speaker, _, text, model in written:
            alone = sum(turn[0] == round for turn in written) == 1
            values = scores.get((unit, round, speaker)) or (scores.get((unit, round, "")) if alone else None)
            if values is None:
                continue
            known = [value for value in values if value is not None]
            found = found or bool(known)
            yield run.statement(
                unit,
                facets,
                prompt=prompt,
                text=text,
                speaker=speaker,
                round=round,
                model=run.addresses.hide(model or ""),
                score=statistics.fmean(known) if known else None,
            )
    if not found:
        metrics = [row[0] for row in run.file.rows("SELECT DISTINCT metric FROM verdicts ORDER BY metric")[1]]
        raise ConfigError(
            f"{run.file.path}: no text of a debater or generator has a score '{settings.metric}'; "
            f"the run's metrics are {', '.join(metrics) or 'none'}: choose with --metric"
        )


def labelled(run: Opened, settings: Settings) -> Iterator[Statement]:
    """What people labelled in the viewer.

    Of two candidates, each has the share of raters who preferred it, a tie being half; otherwise a text has the mean of
    its scores on the metric.
    """
    from parley.viewer.label_texts import label_item
    from parley.viewer.notes import NotesFile

    labels: dict[str, list[dict[str, Any]]] = {}
    for label in NotesFile(run.file.path).labels():
        if label["metric"] == settings.metric:
            labels.setdefault(label["unit"], []).append(label)
    if not labels:
        raise ConfigError(
            f"{run.file.path}: there are no labels '{settings.metric}' beside it; label texts with `parley view`"
        )
    for unit, facets in run.units():
        if unit not in labels:
            continue
        item = label_item(run.file, unit, blind=False)
        prompt = "\n\n".join(text for _, text in item.task)
        choices = [label["text"] for label in labels[unit] if label["text"] in ("A", "B", "tie")]
        for text in item.texts:
            if settings.metric == "preferred":
                marks = [{text.subject: 1.0, "tie": 0.5}.get(choice, 0.0) for choice in choices]
            else:
                given = [label for label in labels[unit] if label["subject"] == text.subject]
                marks = [label["value"] for label in given if label["value"] is not None]
            if marks:
                yield run.statement(
                    unit,
                    facets,
                    prompt=prompt,
                    text=text.text,
                    speaker=text.subject,
                    round=item.round or 0,
                    score=statistics.fmean(marks),
                )
