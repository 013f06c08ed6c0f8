"""The runs of a dataset with their scored statements.

RLDF's debates have the referee's scores and flags (`parley.reports.export.statements`). In other runs, statements are
texts of debaters and generators, with a judge's score: the drafts and revisions of a critique, STARDTOX's and MABRF's
texts before and after, the statements of a debate of your own. The prompt is the conversation's opening, and a pair
stays within one conversation.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from parley.agents import ConfigError
from parley.agents.structured import looks_like_refusal
from parley.base.redaction import HiddenAddresses
from parley.judging.rldf.referee import AGAIN
from parley.judging.rldf.statements import loops, words_of
from parley.reports.export.settings import Settings
from parley.reports.export.statements import Statement, debated
from parley.runs import RunFile, explain_damage

WRITERS = ("debater", "generator")
CHECKED_FLAGS = ("refused", "loop")
"""The flags that can be set without RLDF's verdicts."""
KINDS = ("bias", "category", "set")
"""Facets that may name a kind of conversation, for the card's counts."""
WRITERS_CALLS = 2000
"""Calls that are searched for the writers' prompts: every method and every round is among the first of a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A run with its statements, without the addresses of its models: a dataset is made to be shared."""

    path: Path
    run_id: str
    info: dict[str, Any]
    prompts: dict[str, str]
    units: dict[str, int]
    instructions: str
    """The prompts of the statements' writers."""
    statements: list[Statement]


def read_run(path: Path, settings: Settings | None = None) -> Source:
    """The statements of a run's finished debates, or of another study's conversations; ConfigError if it has none.

    Args:
        path: The run file.
        settings: The scores to read; by default the study's.
    """
    with explain_damage(path), RunFile.open(path) as file:
        info = file.info()
        study = info["study"]
        chosen = (settings or Settings()).of_study(study)
        refereed = chosen.refereed(study)
        what = "debate" if refereed else "conversation"
        if not file.counts()["done"]:
            raise ConfigError(f"{path} has no finished {what} yet")
        identity = json.dumps([info["config"], info["plan"]], sort_keys=True)
        run_id = hashlib.sha256(identity.encode()).hexdigest()[:12]
        addresses = HiddenAddresses(info)
        if refereed:
            statements = list(debated(file, path.stem, run_id, addresses))
        else:
            opened = Opened(file, path.stem, run_id, study, addresses)
            statements = list(judged(opened, chosen))
        if not statements:
            raise ConfigError(f"{path}: no {what} of '{study}' has a text by a debater or generator")
        return Source(
            path=path,
            run_id=run_id,
            info=addresses.hide(info),
            prompts=file.prompts(),
            units=file.counts(),
            instructions=_instructions(file),
            statements=statements,
        )


def _instructions(file: RunFile) -> str:
    """The run's prompts that were sent to writers, found in the calls of their turns."""
    texts = dict(file.rows("SELECT name, text FROM prompts ORDER BY name")[1])
    missing = {name: _literals(text) for name, text in texts.items()}
    sent = set[int]()
    for (prompt,) in file.rows(
        "SELECT c.prompt FROM units u JOIN messages m ON m.unit = u.id "
        "JOIN calls c ON c.unit = m.unit AND c.seq = m.seq WHERE u.status = 'done' "
        f"AND m.role IN ({', '.join('?' * len(WRITERS))}) AND m.speaker != ? ORDER BY u.position, m.seq LIMIT ?",
        (*WRITERS, AGAIN, WRITERS_CALLS),
    )[1]:
        for _, _, text_id in json.loads(prompt):
            if text_id in sent:
                continue
            sent.add(text_id)
            for (text,) in file.rows("SELECT text FROM texts WHERE id = ?", (text_id,))[1]:
                missing = {name: parts for name, parts in missing.items() if not all(part in text for part in parts)}
    return "\n".join(text for name, text in texts.items() if name not in missing)


def _literals(template: str) -> Sequence[str]:
    """The parts of a prompt that appear in every message made from it: its text between the placeholders."""
    try:
        parts = [part.strip() for part, _, _, _ in Formatter().parse(template)]
    except ValueError:  # not a template: JSON has braces too
        parts = [template.strip()]
    return [part for part in parts if part]


def read_runs(paths: Iterable[Path], settings: Settings | None = None) -> list[Source]:
    """Several runs of one study; ConfigError if one is given twice.

    Args:
        paths: The run files.
        settings: As in `read_run`.
    """
    sources = [read_run(path, settings) for path in paths]
    if len({source.info["study"] for source in sources}) > 1:
        raise ConfigError("the runs are of different studies: export each study separately")
    if len({source.run_id for source in sources}) < len(sources):
        raise ConfigError("the same run is given twice")
    return sources


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
    """The texts of units that have the metric, with the judges' mean scores.

    A score is a verdict about the speaker (its subject) in that round, or about the whole round if one text was written
    in it. ConfigError if the run has no such score.
    """
    scores: dict[tuple[str, int, str], list[float | None]] = {}
    for unit, round, subject, value in run.file.rows(
        "SELECT unit, round, subject, value FROM verdicts WHERE metric = ? ORDER BY unit, nth", (settings.metric,)
    )[1]:
        scores.setdefault((unit, round, subject), []).append(value)
    scored_units = {unit for unit, _, _ in scores}
    any_score = False
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
            scored = [value for value in values if value is not None]
            any_score = any_score or bool(scored)
            yield run.statement(
                unit,
                facets,
                prompt=prompt,
                text=text,
                speaker=speaker,
                round=round,
                model=run.addresses.hide(model or ""),
                score=statistics.fmean(scored) if scored else None,
            )
    if not any_score:
        metrics = [row[0] for row in run.file.rows("SELECT DISTINCT metric FROM verdicts ORDER BY metric")[1]]
        if settings.metric in metrics:
            what = f"the scores '{settings.metric}' name no debater or generator as their subject (docs/autogen.md)"
        else:
            what = f"there are no scores '{settings.metric}'; choose another --metric ({', '.join(metrics) or 'none'})"
        raise ConfigError(f"{run.file.path}: {what}")
