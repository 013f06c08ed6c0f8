"""How a worker creates the same study as the run's own process: from its name and config, never from pickled objects.

It contains no secrets: keys come from the worker's own environment.
"""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from parley.agents import ConfigError
from parley.base.plugins import absolute_path
from parley.judging import Accepted, Staged, Study
from parley.runs.plan import weights_of
from parley.runs.studies import find_study


def fingerprint(study: Study) -> str:
    """Equal for two studies with the same version of Parley, config, data, prompts and weights."""
    try:
        parley_version = version("parley-autogen")
    except PackageNotFoundError:
        parley_version = "a checkout"
    ingredients = (
        parley_version,
        study.config.model_dump_json(),
        sorted(study.sources().items()),
        sorted(study.prompts().items()),
        sorted(weights_of(study).items()),
    )
    return hashlib.sha256(repr(ingredients).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySpec:
    """All that a worker needs to create the study."""

    target: str
    """The study's name, or file.py:Class."""
    config: str
    """The study's config as JSON."""
    accepted: tuple[Accepted, ...] | None
    """What the study before this one wrote, if there was one."""
    source: str | None
    """The text of the study's file, if it is the user's: other machines may not have the file."""
    folder: str
    """The working directory of the run."""
    path: tuple[str, ...]
    """The run's `sys.path`, in absolute entries. It is set when a worker starts, before anything is imported there."""
    fingerprint: str
    trace: str | None
    """The run's span, if the run is traced."""

    @classmethod
    def of(
        cls, study: Study, target: str, accepted: Sequence[Accepted] | None = None, *, trace: str | None = None
    ) -> StudySpec:
        file = Path(target.rpartition(":")[0])
        return cls(
            target=target,
            config=study.config.model_dump_json(),
            accepted=None if accepted is None else tuple(accepted),
            source=file.read_text("utf-8") if file.suffix == ".py" else None,
            folder=os.getcwd(),
            path=absolute_path(),
            fingerprint=fingerprint(study),
            trace=trace,
        )

    def make(self) -> Study:
        """Create the study, in the run's working directory if this machine has it."""
        if Path(self.folder).is_dir():
            os.chdir(self.folder)
        study_class = find_study(self._local_target())
        study = study_class(study_class.Config.model_validate_json(self.config))
        if self.accepted is not None:
            assert isinstance(study, Staged), "only a staged study follows another"
            study = study.after(self.accepted)
        if fingerprint(study) != self.fingerprint:
            raise ConfigError(
                f"the worker on {socket.gethostname()} has another version of Parley, of {self.target}, its prompts, "
                "its data or its models' weights than the machine that started the run"
            )
        return study

    def _local_target(self) -> str:
        """The user's file on this machine if it is the same, or else a copy of the text that was sent."""
        if self.source is None:
            return self.target
        name, _, class_name = self.target.rpartition(":")
        file = Path(name)
        if not file.is_file() or file.read_text("utf-8") != self.source:
            file = Path(tempfile.mkdtemp(prefix="parley-study-")) / file.name
            file.write_text(self.source, "utf-8")
        return f"{file}:{class_name}"
