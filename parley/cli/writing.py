"""Writes the file of `parley run STUDY --to FILE`: topics, or a suite of scenarios.

The first line names the run, which has every attempt, and has a hash of the rest: only an unedited file is overwritten.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from parley.base.errors import ConfigError, ParleyError
from parley.base.files import WITH_FORCE, new_file, refuse
from parley.judging import Study
from parley.judging.study import Written
from parley.judging.writing.study import WritingStudy
from parley.runs import RunFile


def suffix_of(study: type[Study]) -> str:
    """The suffix of the file that a study writes; "" if it writes none."""
    return study.writes if issubclass(study, WritingStudy) else ""


def write(study: Study, run: Path) -> Written:
    """The study's output from the accepted replies of its finished run; ParleyError if there are none."""
    with RunFile.open(run) as file:
        accepted = list(file.accepted())
    written = study.written(accepted) if accepted and isinstance(study, WritingStudy) else None
    if written is None or not written.text:
        raise ParleyError(
            f"nothing was accepted, so no file was written; parley show {run} shows why, another --seed asks again"
        )
    return written


def refuse_overwriting(target: Path, run: Path, suffix: str, *, force: bool) -> None:
    """Raise `ConfigError` before the run if the file cannot be written.

    Args:
        target: The file.
        run: The run that will write it.
        suffix: The suffix of its name.
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
