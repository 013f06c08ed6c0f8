"""The steps of a paper's replication. Each leaves its result in the replication's folder, and is done once it is there.

`parley.cli.paper_plan` makes them from a paper's file.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from parley.base.errors import ConfigError, ParleyError
from parley.base.home import say
from parley.base.text import plural
from parley.cli.dry_run import estimates
from parley.cli.run import execute, how_it_ended
from parley.cli.train import result_lines
from parley.reports.export import Settings, make_dataset, write_dataset
from parley.runs import RunFile
from parley.runs.job import Job
from parley.runs.notes import runs_in
from parley.runs.plan import refuse_if_changed
from parley.training.adapters import MERGED
from parley.training.config import PAPERS_PAIRS, TrainConfig, seed_configs
from parley.training.exported import manifest_of
from parley.training.folders import state_of, system_folders
from parley.training.pairs import read_pairs
from parley.training.stages import STEP_FOLDERS, plan, steps

NOTHING: Mapping[str, Any] = {"units": 0, "calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost": 0.0}
"""What a step costs that calls no model."""


@dataclass(slots=True)
class Step:
    """A step, and where its result is."""

    name: str
    about: str
    path: Path

    @abstractmethod
    def is_done(self) -> bool:
        """Whether the result is there; ParleyError if one with other settings is."""

    @abstractmethod
    def run(self, *, budget: float | None, quiet: bool) -> tuple[int, bool]:
        """Do what is left; returns the exit status, and whether no further step should be tried.

        Args:
            budget: The limit in US dollars of this step.
            quiet: Show no progress.
        """

    def estimates(self) -> Mapping[str, Any]:
        """The expected units, calls, tokens and cost, and `notes`."""
        return {**NOTHING, "notes": []}

    def run_files(self) -> Iterator[Path]:
        """The run files of the result."""
        yield from ()

    def names(self) -> dict[str, str]:
        """The names that its models have in the paper's tables, or outside this folder, by the models' names."""
        return {}


@dataclass(slots=True)
class StudyStep(Step):
    """A run of a study."""

    job: Job

    def is_done(self) -> bool:
        if not self.path.exists():
            return False
        with RunFile.open(self.path) as file:
            refuse_if_changed(file, self.job.study, self.job.size)
            counts = file.counts()
        return counts["done"] == sum(counts.values())

    def run(self, *, budget: float | None, quiet: bool) -> tuple[int, bool]:
        self.job.options = self.job.options.model_copy(update={"budget_cost": budget})
        ended, result = execute(self.job, quiet=quiet)
        answer = how_it_ended(ended, result, hint=False)
        for line in answer.lines:
            say(line)
        return answer.status, result.stopped is not None  # by the user, a budget or a server

    def estimates(self) -> Mapping[str, Any]:
        return estimates(self.job)

    def run_files(self) -> Iterator[Path]:
        if self.path.exists():
            yield self.path


class ExportSettings(Settings):
    """The settings of an export, and the steps whose runs it is made of."""

    runs: list[str]


@dataclass(slots=True)
class ExportStep(Step):
    """A dataset of preference pairs, made from the runs of other steps."""

    settings: ExportSettings

    def is_done(self) -> bool:
        manifest = manifest_of(self.path)
        stored = manifest.get("settings", {})
        given = self.settings.model_dump(mode="json", include=self.settings.model_fields_set)
        if manifest and any(stored.get(key) != value for key, value in given.items()):
            raise ConfigError(f"{self.path} was exported with other settings: choose another --out, or remove it")
        return bool(manifest)

    def run(self, *, budget: float | None, quiet: bool) -> tuple[int, bool]:
        runs = [self.path.with_name(f"{name}.sqlite") for name in self.settings.runs]
        for path in runs:
            if not path.exists() or _units_left(path):
                raise ParleyError(f"{path} is not complete")
        dataset = make_dataset(runs, self.settings)
        say(f"{plural(len(dataset.pairs), 'pair')}: {write_dataset(dataset, self.path)}")
        return 0, False


def _units_left(path: Path) -> int:
    with RunFile.open(path) as file:
        counts = file.counts()
    return sum(counts.values()) - counts["done"]


@dataclass(slots=True)
class TrainStep(Step):
    """All stages of training on a step's pairs, RLAIF, and the evaluation."""

    config: TrainConfig

    def is_done(self) -> bool:
        return all(
            state_of(Path(each.out) / STEP_FOLDERS.get(name, name)) == "finished"
            for name, each in plan("all", self.config)
        )

    def run(self, *, budget: float | None, quiet: bool) -> tuple[int, bool]:
        from parley.training.running import train  # it loads pandas

        evaluation = self.config.evaluate.model_copy(update={"budget_cost": budget})
        config = self.config.model_copy(update={"evaluate": evaluation})
        report = (lambda line: None) if quiet else say
        status = 0
        for stage in steps("all", config):
            try:
                results = train(config, stage, report=report, run=partial(execute, quiet=quiet))
            except ParleyError as error:
                if stage != "rlaif":
                    raise
                say(f"RLAIF is not measured: {error}")  # the other systems are
                status = 1
            else:
                for line in result_lines(results, config)[:-1]:
                    say(line)
        return status, False

    def estimates(self) -> Mapping[str, Any]:
        config = self.config
        stages = ", ".join(dict.fromkeys(name for name, _ in plan("all", config)))
        line = f"{self.name}: {stages} of {config.base} on {_device()}, {plural(config.seeds, 'seed')}"
        if Path(config.data).is_dir():
            count = len(read_pairs(config).train)
            updates = -(-count // config.reward.batch_size)
            line += (
                f"; {count:,} pairs to train on (the paper: {PAPERS_PAIRS:,}), {updates:,} updates of the reward model"
            )
        return {**NOTHING, "notes": [f"{line}; labels and scores of its answers are not in the sum"]}

    def run_files(self) -> Iterator[Path]:
        yield from runs_in(self.path)

    def names(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for config in seed_configs(self.config) if self.config.seeds > 1 else [self.config]:
            names[f"hf/{config.out}/base"] = config.base
            for system, folder in system_folders(config).items():
                names |= {f"hf/{folder}": system, f"hf/{folder}/{MERGED}": system}
        return names


def _device() -> str:
    """What training would run on."""
    if find_spec("torch") is None:
        return "nothing: torch is not installed"
    from parley.training.device import device

    return str(device())
