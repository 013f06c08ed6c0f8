"""What `parley run STUDY --to FILE` writes after a study that writes: topics, or a suite of scenarios.

The first line names the run, which has every attempt, and has a hash of the rest: only an unedited file is overwritten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from parley.base.errors import ConfigError, ParleyError
from parley.base.files import WITH_FORCE, new_file, refuse
from parley.base.text import plural
from parley.runs import RunFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The content of a file.

    Args:
        text: What it has.
        remark: How to continue with it.
        about: What was written, in words.
        missing: Whether it has less than was asked for.
    """

    text: str
    remark: str
    about: str
    missing: bool = False


class Writer(NamedTuple):
    """What makes a study's file.

    Args:
        suffix: How the file's name ends.
        make: Makes it from the study and its finished run.
    """

    suffix: str
    make: Callable[[Any, Path], Written]


def topics(study: Any, run: Path) -> Written:
    """Topics for debates, one per line."""
    collected = study.harvest(_accepted(run))
    total = sum(map(len, collected.topics.values()))
    if not total:
        raise _nothing(run)
    missing = f", {collected.missing} fewer than requested" if collected.missing else ""
    return Written(
        text="".join(
            f"# {area}\n" + "".join(f"{topic}\n" for topic in found) for area, found in collected.topics.items()
        ),
        remark="Edit freely, one topic per line.",
        about=f"{plural(total, 'topic')} in {plural(len(collected.topics), 'area')}{missing}; "
        f"{plural(len(collected.near), 'near-duplicate')} left out",
        missing=collected.missing > 0,
    )


def suite(study: Any, run: Path) -> Written:
    """A suite of scenarios."""
    written = study.harvest(_accepted(run))
    answered = sum(bool(scenario.responses) for scenario in written.scenario)
    return Written(
        text=written.to_toml(),
        remark="Edit freely, then: parley scenarios validate",
        about=f"{plural(len(written.scenario), 'scenario')}, {answered} with responses",
    )


SUITE = Writer(".toml", suite)
WRITERS = {"topics": Writer(".txt", topics), "malibu-derive": SUITE, "malibu-respond": SUITE}
"""What writes the file of `--to`, by study; others have no such flag."""


def _accepted(run: Path) -> list[Any]:
    with RunFile.open(run) as file:
        if accepted := list(file.accepted()):
            return accepted
    raise _nothing(run)


def _nothing(run: Path) -> ParleyError:
    return ParleyError(
        f"nothing was accepted, so no file was written; parley show {run} shows why, another --seed asks again"
    )


def refuse_overwriting(target: Path, run: Path, suffix: str, *, force: bool) -> None:
    """Raise `ConfigError` if the file cannot be written, before anything is spent.

    Args:
        target: The file.
        run: The run that will write it.
        suffix: How its name must end.
        force: Overwrite any file.
    """
    if target.suffix != suffix:
        raise ConfigError(f"{target}: the file's name must end in {suffix}")
    refuse(target, lambda path: force or _is_unedited(path, run), WITH_FORCE)


def save(written: Written, target: Path, run: Path, *, force: bool) -> None:
    """Write the file, with a heading that says which run wrote it."""
    heading = f"{_signature(run, written.text)}, which has every attempt. {written.remark}"
    with new_file(target, lambda path: force or _is_unedited(path, run)) as file:
        file.write(f"{heading}\n{written.text}")


def _signature(run: Path, body: str) -> str:
    return f"# Written by {run.name} ({sha256(body.encode()).hexdigest()[:16]})"


def _is_unedited(target: Path, run: Path) -> bool:
    """Whether this run wrote the file and it has not been edited since, so that a resumed run may overwrite it."""
    try:
        text = target.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return text.startswith(_signature(run, text.partition("\n")[2]))
