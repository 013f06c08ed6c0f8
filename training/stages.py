"""Stages of training: a decorated function each. Command line, config, resuming and results follow from it.

    class KtoSettings(TrainerSettings):
        beta: float = Field(0.1, ge=0, description="weight of the divergence from the SFT model")

    @stage("kto", table=KtoSettings, needs=("sft",), help="KTO on the pairs")
    def train_kto(context, settings, run):
        from trl.experimental.kto import KTOConfig, KTOTrainer

        run.start(load_policy(context.finished_folder("sft"), context.base, context.chat.tokenizer))
        run.train(KTOTrainer(model=run.model, args=KTOConfig(**run.arguments(), beta=settings.beta),
                             train_dataset=…, **run.parts()))
        return {"pairs": len(context.pairs.train)}

`parley train kto.py:train_kto` runs it; an installed package names it as an entry point of the group `parley.stages`.
Its settings are the config's table [kto], its result is OUT/kto. A module of stages imports torch, transformers and TRL
inside its functions: `parley train --help` loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import create_model

from parley.base.plugins import Registry
from parley.training.config import SettingsTable, TrainConfig, tables_of

if TYPE_CHECKING:  # they load pandas and transformers
    from parley.analysis.reporting.report import Table
    from parley.training.context import TrainingContext

WITHOUT_EFFECT = {"out", "stages", "seeds", "inference_backend", "gguf", "save_steps", "per_device_train_batch_size"}
"""Settings that change where results go or how long they take, but not the results."""
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
        evaluation: Tables of its own for the report of `evaluate`, if it has any.
        summary: The result in words, from the manifest.
    """

    name: str
    help: str
    table: type[SettingsTable]
    train: Train
    makes_data: bool = False
    needs: tuple[str, ...] = ()
    prompts: bool = False
    policy: bool = True
    check: Callable[[Any], None] = lambda settings: None
    unrelated: Sequence[str] = ()
    done: Callable[[TrainingContext], None] = lambda context: None
    evaluation: Callable[[TrainingContext], Sequence[Table]] | None = None
    summary: Callable[[Facts], Sequence[str]] = lambda facts: ()

    def depends_on(self) -> list[Stage]:
        """The stages whose settings the result depends on: those that it needs, and itself."""
        earlier = {each.name: each for needed in self.needs for each in find_stage(needed).depends_on()}
        return [*earlier.values(), self]


def stage(name: str, *, table: type[SettingsTable], help: str, **more: Any) -> Callable[[Train], Stage]:
    """Makes a stage of the function that trains it; the arguments are those of `Stage`."""
    return lambda train: Stage(name=name, help=help, table=table, train=train, **more)


JOBS = {
    "rlaif": "the baseline without debates: a model labels pairs, then reward and rl on them",
    "evaluate": "measure trained systems and baselines: BBQ, and BS, CE and LS on held-out topics",
    "control": "a positive control: train on generated data with a planted bias, and check that the bias falls",
    "merge": "write models that were trained with use_peft as whole models, to OUT/STAGE/merged",
    "ablate": "train and evaluate at each value of the lists in [ablate]",
    "all": "sft, reward and rl (or the config's `stages`), rlaif (if rlaif.labeller is set) and evaluate (if "
    "evaluate.bbq or evaluate.judges is set, or a stage has an evaluation of its own)",
}
"""What `parley train` does besides single stages."""
STAGES = Registry(
    "training stage",
    group="parley.stages",
    shipped={
        "sft": "parley.training.sft:train_sft",
        "reward": "parley.training.reward:train_reward",
        "rl": "parley.training.rl:train_rl",
    },
    members=("train", "table", "depends_on"),
    contract="training/stages.py",
    others=tuple(JOBS),
)


def find_stage(name: str) -> Stage:
    """A stage by its name, or as file.py:function."""
    found: Stage = STAGES.find(name)
    return found


def config_class(names: Iterable[str]) -> type[TrainConfig]:
    """The config's class, with the tables of stages that are not ours and of those that they need."""
    needed = [each for name in names for each in find_stage(name).depends_on()]
    known = TrainConfig.model_fields
    tables: dict[str, Any] = {each.name: (each.table, each.table()) for each in needed if each.name not in known}
    return create_model("TrainConfig", __base__=TrainConfig, **tables) if tables else TrainConfig


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
