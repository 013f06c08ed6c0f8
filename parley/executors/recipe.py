"""How a worker makes the same study as the run's own process: from its name and config, never from pickled objects.

Nothing secret is in it: keys come from the worker's own environment.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from parley.agents import ConfigError
from parley.judging import Accepted, Staged, Study
from parley.studies import find_study


def fingerprint(study: Study) -> str:
    """Equal for two studies that would do the same: same version, config, data and prompts."""
    try:
        ours = version("parley-autogen")
    except PackageNotFoundError:
        ours = "a checkout"
    made_from = (
        ours,
        study.config.model_dump_json(),
        sorted(study.sources().items()),
        sorted(study.prompts().items()),
    )
    return hashlib.sha256(repr(made_from).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Recipe:
    target: str
    config: str
    """The study's config as JSON."""
    accepted: tuple[Accepted, ...] | None
    """What the study before this one wrote, where there was one."""
    source: str | None
    """The text of the study's own file, where it is one of the user's: other machines may not have it."""
    folder: str
    path: tuple[str, ...]
    fingerprint: str
    trace: str | None
    """The run's span, where spans are wanted."""

    @classmethod
    def of(
        cls, study: Study, target: str, accepted: Sequence[Accepted] | None = None, *, trace: str | None = None
    ) -> Recipe:
        file = Path(target.rpartition(":")[0])
        return cls(
            target,
            study.config.model_dump_json(),
            None if accepted is None else tuple(accepted),
            file.read_text("utf-8") if file.suffix == ".py" else None,
            os.getcwd(),
            tuple(sys.path),
            fingerprint(study),
            trace,
        )

    def make(self) -> Study:
        """The study, in a process whose working folder and modules are those of the run, as far as they are there."""
        if Path(self.folder).is_dir():
            os.chdir(self.folder)
        sys.path.extend(entry for entry in self.path if entry not in sys.path and Path(entry).exists())
        found = find_study(self._target())
        study = found(found.Config.model_validate_json(self.config))
        if self.accepted is not None:
            assert isinstance(study, Staged), "only a staged study is made from what another wrote"
            study = study.after(self.accepted)
        if fingerprint(study) != self.fingerprint:
            raise ConfigError(
                f"the worker on {socket.gethostname()} has another version of Parley, of {self.target}, its prompts "
                "or its data than the machine that started the run"
            )
        return study

    def _target(self) -> str:
        """The user's file as it is here, or else the text that was sent."""
        if self.source is None:
            return self.target
        name, _, kind = self.target.rpartition(":")
        file = Path(name)
        if not file.is_file() or file.read_text("utf-8") != self.source:
            file = Path(tempfile.mkdtemp(prefix="parley-study-")) / file.name
            file.write_text(self.source, "utf-8")
        return f"{file}:{kind}"
