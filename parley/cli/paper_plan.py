"""Plans a paper's replication: `papers/NAME.toml` lists its steps, which get their data, scale and folder here.

A text in a step's config may name a value in braces: {model}, {data} (the folder of --data), {out} (the folder of the
replication), {base} (the model to train), {search}, or one of the files and folders of `DATA`, which are looked for in
{data}. A step whose files are not there is left out, and the others are run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import product
from math import ceil
from pathlib import Path
from string import Formatter
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from parley.agents import DEFAULT_MODEL
from parley.agents.providers import provider_of
from parley.base.errors import ConfigError, ParleyError, ScenarioError, install
from parley.base.problems import near_key
from parley.base.toml import parse_toml
from parley.cli.doctor import missing_extra
from parley.cli.paper_steps import ExportSettings, ExportStep, Step, StudyStep, TrainStep
from parley.cli.train import known_keys, put
from parley.runs.job import Job
from parley.runs.options import Options, validated
from parley.runs.studies import find_study
from parley.training.base_model import MISSING
from parley.training.config import TrainConfig

PAPERS = Path(__file__).parent / "papers"


class DataFile(NamedTuple):
    """Data that a paper's runs read.

    Args:
        title: Its name.
        patterns: What its file may be called, in the folder of --data or up to two folders below it.
        where: Where to get it.
        folder: Whether the data are the folder of that file.
    """

    title: str
    patterns: tuple[str, ...]
    where: str
    folder: bool = False


DATA = {
    "prompts": DataFile(
        "RealToxicityPrompts",
        ("prompts.jsonl", "rtp*.jsonl", "*toxicity*prompts*.jsonl"),
        "https://huggingface.co/datasets/allenai/real-toxicity-prompts",
    ),
    "bbq": DataFile("BBQ", ("Age.jsonl",), "https://github.com/nyu-mll/BBQ", folder=True),
    "hard": DataFile(
        "BBQHard.csv", ("BBQHard*.csv", "BBQ-Hard*.csv"), "docs/mabrf.md#your-own-bbq-hard, or the authors' repository"
    ),
    "squad": DataFile("SQuAD v2", ("dev-v2.0*.json",), "https://rajpurkar.github.io/SQuAD-explorer"),
}
SEARCH, ARTICLES = "search", "articles"
"""The value in braces for a search engine, and the folder of {data} that is searched instead of the web."""
TRAINING = "training"
"""The extra that trains, as a value in braces."""


class NotHere(ParleyError):
    """Something that a step needs is not on this machine."""


class PaperStep(BaseModel, extra="forbid", frozen=True):
    """A step as the paper's file has it."""

    name: str
    about: str
    does: Literal["run", "export", "train"] = "run"
    study: str = ""
    """What a step that is a run runs."""
    config: dict[str, Any]
    scaled: list[str] = []
    """Settings that --scale makes smaller: the first one as far as it can be, then the next."""
    without: str = ""
    """A value in braces: the step is left out where there is one, since another step has its rows too."""

    @property
    def config_type(self) -> type[BaseModel]:
        """The type of its settings."""
        ours: dict[str, type[BaseModel]] = {"export": ExportSettings, "train": TrainConfig}
        return ours.get(self.does) or find_study(self.study).Config

    def settings(self) -> list[str]:
        """The settings that it has."""
        return known_keys() if self.does == "train" else list(self.config_type.model_fields)

    def setting(self, key: str) -> str:
        """The setting that a key names, which may have the step's name before it."""
        return key.removeprefix(f"{self.name}.")

    def has(self, key: str) -> bool:
        """Whether a key names one of its settings."""
        return self.setting(key) in self.settings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication:
    """A paper's steps on one model.

    Args:
        paper: The paper's name.
        model: The model under test.
        data: The folder with the data.
        out: The folder of the run files.
        scale: The share of the paper's size.
        settings: Settings that replace the paper's: the key, or step.key, and the value.
    """

    paper: str
    model: str
    data: Path
    out: Path
    scale: float = 1.0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def steps(self, only: Sequence[str], options: Options) -> Iterator[Step | NotHere]:
        """The steps, in order; in place of one that cannot be run here, the reason.

        Args:
            only: Names of the steps (empty: all).
            options: How to execute them.
        """
        listed = read_steps(self.paper)
        for name in only:
            if name not in (names := [step.name for step in listed]):
                raise ConfigError(f"--only: {self.paper} has no step '{name}'{near_key(name, names)}")
        self._refuse_unknown_settings(listed)
        for step in listed:
            if step.name not in only if only else step.without and self._has(step.without):
                continue
            try:
                config = self.config_of(step)
            except NotHere as error:
                yield NotHere(f"{step.name} is not measured: {error}")
                continue
            checked = validated(step.config_type, config)  # a wrong --set ends the command
            try:
                yield self._make(step, checked, options)
            except (ParleyError, ScenarioError) as error:
                yield NotHere(f"{step.name} is not measured: {error}")

    def _make(self, step: PaperStep, config: BaseModel, options: Options) -> Step:
        path = self.out / step.name
        if isinstance(config, ExportSettings):
            return ExportStep(step.name, step.about, path, config)
        if isinstance(config, TrainConfig):
            self._value(TRAINING)
            return TrainStep(step.name, step.about, path, config)
        path = path.with_name(f"{step.name}.sqlite")
        given = config.model_dump(include=config.model_fields_set)
        job = Job.make(step.study, given, options.model_copy(update={"out": str(path)}))
        return StudyStep(step.name, step.about, path, job)

    def config_of(self, step: PaperStep) -> dict[str, Any]:
        """A step's settings: the paper's, made smaller by the scale, then the user's."""
        config = {key: self._filled(value) for key, value in step.config.items()}
        rest = self.scale
        for key in step.scaled:
            whole = config[key]
            config[key] = min(whole, ceil(round(whole * rest, 6)))
            rest *= whole / config[key]
        config |= {step.setting(key): value for key, value in self.settings.items() if step.has(key)}
        first = {"run": {"model": self.model}, "train": {"out": str(self.out / step.name)}}.get(step.does, {})
        tables: dict[str, Any] = {}
        for key, value in (first | config).items():
            put(tables, key, value)
        return tables

    def _refuse_unknown_settings(self, listed: Sequence[PaperStep]) -> None:
        for key in self.settings:
            if not any(step.has(key) for step in listed):
                named = [step for step in listed if step.setting(key) != key]
                settings = list(dict.fromkeys(name for step in named or listed for name in step.settings()))
                what = f"the step '{named[0].name}' has no" if named else f"no step of {self.paper} has a"
                setting = named[0].setting(key) if named else key
                raise ConfigError(f"--set {key}: {what} setting '{setting}'{near_key(setting, settings)}")

    def _filled(self, value: Any) -> Any:
        """A value of a config with the words in braces replaced; NotHere if one has no value here."""
        if isinstance(value, list):
            return [self._filled(each) for each in value]
        if not isinstance(value, str):
            return value
        names = [name for _, name, _, _ in Formatter().parse(value) if name]
        return value.format(**{name: self._value(name) for name in names})

    def _has(self, name: str) -> bool:
        try:
            return bool(self._value(name))
        except NotHere:
            return False

    def _value(self, name: str) -> str:
        if name in DATA:
            return self._find(DATA[name])
        if name == SEARCH:
            return self._search_engine()
        if name == TRAINING and missing_extra(TRAINING):
            raise NotHere(MISSING)
        base = self.model.partition("?")[0] if provider_of(self.model).embedded else DEFAULT_MODEL
        return str({"model": self.model, "data": self.data, "out": self.out, "base": base, TRAINING: TRAINING}[name])

    def _find(self, wanted: DataFile) -> str:
        for above, pattern in product(("", "*/", "*/*/"), wanted.patterns):  # rglob would not follow links
            for path in sorted(self.data.glob(above + pattern)):
                return str(path.parent if wanted.folder else path)
        raise NotHere(f"{wanted.title} is not in {self.data}; see {wanted.where}")

    def _search_engine(self) -> str:
        """The folder of articles, else the engine of the paper."""
        if (articles := self.data / ARTICLES).is_dir():
            return f"folder:{articles}"
        if find_spec("ddgs") is None:
            raise NotHere(f"there is no folder {articles} to search, nor the extra for the web: {install('search')}")
        return "duckduckgo"


def papers() -> list[str]:
    """The names of the papers."""
    return sorted(path.stem for path in PAPERS.glob("*.toml"))


def read_steps(paper: str) -> list[PaperStep]:
    """The steps of a paper; ConfigError if there is no such paper."""
    if paper not in papers():
        raise ConfigError(f"there is no paper '{paper}' (known: {', '.join(papers())})")
    listed = parse_toml((PAPERS / f"{paper}.toml").read_text("utf-8"))["step"]
    return [validated(PaperStep, step) for step in listed]
