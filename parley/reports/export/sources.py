"""The runs that a dataset is made from, each with its statements."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.agents import ConfigError
from parley.base.redaction import HiddenAddresses
from parley.reports.export.conversations import Opened, judged, labelled
from parley.reports.export.settings import Settings
from parley.reports.export.statements import Statement, debated
from parley.runs import RunFile, explain_damage
from parley.runs.packing import run_stem

_OF_JUDGES = re.compile("referee|judge|evaluat|criteria|rldf/statements", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A run with its statements, without the addresses of its models: a dataset is made to be shared."""

    path: Path
    run_id: str
    info: dict[str, Any]
    prompts: dict[str, str]
    units: dict[str, int]
    instructions: str
    """The prompts of those who wrote the statements."""
    statements: list[Statement]


def read_run(path: Path, settings: Settings | None = None) -> Source:
    """The statements of a run's finished debates, or of another study's conversations; ConfigError if it has none.

    Args:
        path: The run file.
        settings: Which scores to read; by default those of the study.
    """
    with explain_damage(path), RunFile.open(path) as file:
        info = file.info()
        study = info["study"]
        chosen = (settings or Settings()).of_study(study)
        identity = json.dumps([info["config"], info["plan"]], sort_keys=True)
        run_id = hashlib.sha256(identity.encode()).hexdigest()[:12]
        addresses = HiddenAddresses(info)
        if study == "rldf" and chosen.metric == "bias" and not chosen.labels:
            statements = list(debated(file, run_stem(path), run_id, addresses))
        else:
            opened = Opened(file, run_stem(path), run_id, study, addresses)
            statements = list((labelled if chosen.labels else judged)(opened, chosen))
        if not statements:
            raise ConfigError(f"{path} has no finished debate yet")
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
    """Every prompt but the referee's and the evaluators'."""
    prompts = file.rows("SELECT name, text FROM prompts ORDER BY name")[1]
    return "\n".join(text for name, text in prompts if not _OF_JUDGES.search(name))


def read_runs(paths: Iterable[Path], settings: Settings | None = None) -> list[Source]:
    """Several runs of one study; ConfigError if one is given twice.

    Args:
        paths: The run files.
        settings: As in `read_run`.
    """
    sources = [read_run(path, settings) for path in paths]
    if len({source.info["study"] for source in sources}) > 1:
        raise ConfigError("the runs are of different studies: export each study by itself")
    if len({source.run_id for source in sources}) < len(sources):
        raise ConfigError("the same run is given twice")
    return sources
