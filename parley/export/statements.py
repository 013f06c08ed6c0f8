"""Every statement of a debate run with what was found about it, read straight from the run file."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.agents import ConfigError
from parley.judging.rldf.statements import echoes, loops
from parley.runs import RunFile, explain_damage

REFEREE, AGAIN = "Referee", "Referee_again"
FLAGS = ("role_break", "leak", "refused", "echo", "loop", "cut")


@dataclass(frozen=True, slots=True)
class Statement:
    """What one speaker said in one round. `score` is the referee's, None where its report could not be read."""

    id: str
    debate: str
    run: str
    run_id: str
    bias: str
    topic: str
    topic_id: str
    mode: str
    student: str
    model: str
    speaker: str
    round: int
    text: str
    score: float | None
    rank: float | None
    status: str
    score_again: float | None
    flags: tuple[str, ...]
    others: tuple[str, ...]
    """Who else spoke in the debate."""


@dataclass(frozen=True, slots=True)
class Source:
    """A run that statements come from."""

    path: Path
    run_id: str
    info: dict[str, Any]
    prompts: dict[str, str]
    units: dict[str, int]
    statements: list[Statement]


def read_run(path: Path) -> Source:
    with explain_damage(path), RunFile.open(path) as file:
        info = file.info()
        if info["study"] != "rldf":
            raise ConfigError(f"{path}: datasets are made of debates (rldf), and this is a run of '{info['study']}'")
        made_from = json.dumps([info["config"], info["plan"]], sort_keys=True)
        run_id = hashlib.sha256(made_from.encode()).hexdigest()[:12]
        statements = list(_statements(file, path.stem, run_id))
        if not statements:
            raise ConfigError(f"{path} has no finished debate yet")
        return Source(path, run_id, info, file.prompts(), file.counts(), statements)


def read_runs(paths: Iterable[Path]) -> list[Source]:
    sources = [read_run(path) for path in paths]
    twice = [run for run, times in Counter(source.run_id for source in sources).items() if times > 1]
    if twice:
        raise ConfigError("the same run is named twice")
    return sources


def _statements(file: RunFile, run: str, run_id: str) -> Iterable[Statement]:
    facets = {unit: json.loads(text) for unit, text in file.rows("SELECT id, facets FROM units")[1]}
    found: dict[tuple[str, int, str], dict[str, Any]] = {}
    for unit, round, subject, judge, metric, value, status in file.rows(
        "SELECT unit, round, subject, judge, metric, value, status FROM verdicts WHERE subject != ''"
    )[1]:
        here = found.setdefault((unit, round, subject), {"flags": []})
        if metric in FLAGS:
            if value:
                here["flags"].append(metric)
        elif judge == AGAIN:
            here[f"{metric}_again"] = value
        else:
            here[metric] = value
            here["status"] = status
    _, messages = file.rows(
        "SELECT t.unit, t.round, t.speaker, t.text, c.model FROM transcript t JOIN units u ON u.id = t.unit "
        "LEFT JOIN calls c ON c.unit = t.unit AND c.seq = t.seq AND c.nth = 0 "
        "WHERE u.status = 'done' AND t.role = 'debater' AND t.speaker != ? ORDER BY u.position, t.seq",
        (AGAIN,),
    )
    noticed = _repeats(file, facets) if not file.rows("SELECT 1 FROM verdicts WHERE metric = 'echo' LIMIT 1")[1] else {}
    present: dict[str, dict[str, None]] = {}
    for unit, _, speaker, _, _ in messages:
        present.setdefault(unit, {})[speaker] = None
    for unit, round, speaker, text, model in messages:
        about, noted = facets[unit], found.get((unit, round, speaker), {"flags": []})
        yield Statement(
            id=f"{run_id}/{unit}/{round}/{speaker}",
            debate=f"{run_id}/{unit}",
            run=run,
            run_id=run_id,
            bias=about["bias"],
            topic=about["topic"],
            topic_id=about["topic_id"],
            mode=about["mode"],
            student=about["student"],
            model=model or "",
            speaker=speaker,
            round=round,
            text=text.strip(),
            score=noted.get("bias"),
            rank=noted.get("rank"),
            status=noted.get("status", "unparsed"),
            score_again=noted.get("bias_again"),
            flags=(*noted["flags"], *noticed.get((unit, round, speaker), ())),
            others=tuple(name for name in present[unit] if name != speaker),
        )


def _repeats(file: RunFile, facets: dict[str, Any]) -> dict[tuple[str, int, str], list[str]]:
    """The flags `echo` and `loop` of a run from before they were noted."""
    told: dict[str, list[str]] = {}
    found: dict[tuple[str, int, str], list[str]] = {}
    for unit, round, speaker, role, persona, text in file.rows(
        "SELECT unit, round, speaker, role, persona, text FROM transcript ORDER BY unit, seq"
    )[1]:
        if role == "narrator":
            told.setdefault(unit, []).append(text)
        elif role == "debater":
            echo = echoes(text, [persona or "", *told.get(unit, [])], facets[unit]["topic"])
            found[unit, round, speaker] = [name for name, seen in (("echo", echo), ("loop", loops(text))) if seen]
    return found
