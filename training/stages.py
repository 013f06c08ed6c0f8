"""Stages of training: a decorated function each. Command line, config, resuming and results follow from it.

    class KtoSettings(TrainerSettings):
        beta: float = Field(0.1, ge=0, description="weight of the divergence from the SFT model")

    @stage("kto", table=KtoSettings, needs=(train_sft,), help="KTO on the pairs")
    def train_kto(context, settings, run):
        from trl import KTOConfig, KTOTrainer

        model = run.start(load_policy(context.finished_folder("sft"), context.base, context.chat.tokenizer))
        run.train(KTOTrainer(model=model, args=KTOConfig(**run.arguments(), beta=settings.beta),
                             train_dataset=…, **run.parts()))
        return {"pairs": len(context.pairs.train)}

`parley train kto.py:train_kto` runs it; an installed package names it as an entry point of the group `parley.stages`.
Its settings are the config's table [kto], its result is OUT/kto. A module of stages imports torch, transformers and TRL
inside its functions: `parley train --help` loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from parley.training.config import SettingsTable, TrainConfig, tables_of

if TYPE_CHECKING:  # it loads pandas
    from parley.analysis.reporting.report import Table

WITHOUT_EFFECT = {
    "out", "stages", "seeds", "inference_backend", "gguf", "save_steps", "per_device_train_batch_size",
    "full_determinism",
}  # fmt: skip
"""Settings that change where results go or how long they take, but not the results, rounding aside."""
Facts = Mapping[str, Any]
Train = Callable[..., Facts]
"""Takes a TrainingContext, the stage's settings and a StageRun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage of training.

    Args:
        name: Its name on the command line, in the config, and of its folder.
        help: What it does, in a line.
        table: Its settings, the config's table of its name.
        train: Trains, and returns what the manifest says in addition to settings, updates and seconds.
        makes_data: Whether it trains nothing, but writes the pairs to the config's `data` before they are read. It is
            then called with the config, its settings and what takes lines about the progress, finished or not.
        needs: Stages whose results it starts from; their settings are its settings too.
        prompts: Whether it samples answers to the prompts of topics, so that its result depends on them.
        policy: Whether its result is a model that answers, which can be run and evaluated.
        check: Raises ConfigError before anything is trained, if the settings cannot work here.
        unrelated: Settings of the table that do not change the result.
        done: Called with the context after the result is saved, and after a finished stage was found.
        evaluation: Makes tables for the report of `evaluate`, from the context.
        summary: The result in words, from the manifest.
    """

    name: str
    help: str
    table: type[SettingsTable]
    train: Train
    makes_data: bool = False
    needs: tuple[Stage, ...] = ()
    prompts: bool = False
    policy: bool = True
    check: Callable[[Any], None] = lambda settings: None
    unrelated: Sequence[str] = ()
    done: Callable[[Any], None] = lambda context: None
    evaluation: Callable[[Any], Sequence[Table]] | None = None
    summary: Callable[[Facts], Sequence[str]] = lambda facts: ()

    def depends_on(self) -> list[Stage]:
        """The stages whose settings the result depends on: those that it needs, and itself."""
        earlier = {each.name: each for needed in self.needs for each in needed.depends_on()}
        return [*earlier.values(), self]


def stage(name: str, *, table: type[SettingsTable], help: str, **more: Any) -> Callable[[Train], Stage]:
    """Makes a stage of the function that trains it; the arguments are those of `Stage`."""
    return lambda train: Stage(name=name, help=help, table=table, train=train, **more)


def stage_settings(config: TrainConfig, stage: Stage) -> dict[str, Any]:
    """All settings that a stage's result depends on, as plain values."""
    values = config.model_dump(mode="json")
    tables = {name: values.pop(name) for name in tables_of(type(config))}
    shared = {key: value for key, value in values.items() if key not in WITHOUT_EFFECT}
    related = {
        f"{each.name}.{key}": value
        for each in stage.depends_on()
        for key, value in tables[each.name].items()
        if key not in each.unrelated
    }
    return {**shared, **related}
