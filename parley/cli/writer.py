"""Commands that write a file with a model: `scenarios derive`, `scenarios respond` and `topics generate`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from parley.base.errors import ConfigError, ParleyError, explain_unwritable
from parley.cli.flags import add_flags, given
from parley.cli.run import execute_job
from parley.judging import Accepted
from parley.runs import RunFile
from parley.runs.job import Job
from parley.runs.options import Options, validated


def add_writer_flags(parser: argparse.ArgumentParser, config: type[BaseModel], positional: set[str], file: str) -> None:
    """Add the flags of a command that writes a file with a model.

    Args:
        parser: The command's parser.
        config: The config of the study that writes.
        positional: Fields of it that are not flags.
        file: The help on the file that is written.
    """
    parser.add_argument("--to", metavar="FILE", help=file)
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_flags(parser, config, "writing", leave_out=positional)
    add_flags(parser, Options, "run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a study wrote, and the file that it is for."""

    status: int
    """The exit status of the run."""
    study: Any
    run: Path
    target: Path
    accepted: list[Accepted]
    """Empty only if the run failed."""

    def save(self, body: str, remark: str) -> None:
        """Write the file, with a heading that says which run wrote it.

        Args:
            body: What it has.
            remark: How to continue with the file.
        """
        with explain_unwritable(self.target):
            heading = f"{_signature(self.run, body)}, which has every attempt. {remark}"
            self.target.write_text(f"{heading}\n{body}", "utf-8")


def run_writer(
    parsed: argparse.Namespace, study: type[Any], positional: dict[str, Any], name: Callable[[Any], str]
) -> Written:
    """Run a study that writes, unless its file exists already.

    Args:
        parsed: The command's arguments.
        study: The study.
        positional: Settings that are not flags.
        name: Makes the file's default name from the study.
    """
    options = validated(Options, given(parsed, Options))
    job = Job.make(study.name, {**given(parsed, study.Config), **positional}, options)
    usual = Path(name(job.study))
    target = Path(parsed.to) if parsed.to else usual
    if target.suffix != usual.suffix:
        raise ConfigError(f"{target}: the file's name must end in {usual.suffix}")
    if target.exists() and not parsed.force and not _is_unedited(target, job.path):
        raise ConfigError(f"{target} already exists; choose another file with --to, or overwrite it with --force")
    status = execute_job(job, quiet=parsed.quiet, as_json=parsed.json)
    accepted = []
    if not status or job.path.exists():  # otherwise the file was removed meanwhile, as already reported
        with RunFile.open(job.path) as file:
            accepted = list(file.accepted())
        if not accepted:
            raise nothing_accepted(job.path)
    return Written(status=status, study=job.study, run=job.path, target=target, accepted=accepted)


def nothing_accepted(run: Path) -> ParleyError:
    return ParleyError(
        f"nothing was accepted, so no file was written; parley show {run} shows why, another --seed asks again"
    )


def _signature(run: Path, body: str) -> str:
    return f"# Written by {run.name} ({sha256(body.encode()).hexdigest()[:16]})"


def _is_unedited(target: Path, run: Path) -> bool:
    """Whether this run wrote the file and it has not been edited since, so that a resumed run may overwrite it."""
    try:
        text = target.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return text.startswith(_signature(run, text.partition("\n")[2]))
