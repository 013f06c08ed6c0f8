"""The settings of training: one config with a table for each stage. Defaults are the paper's where the paper has one.

    base = "local/smollm2"
    data = "age-pairs"

    [reward]
    learning_rate = 3e-5

Settings of TRL's and transformers' trainers have their names there, and mean the same. A `batch_size` counts over all
devices, as in TRL's PPOConfig: training on eight devices makes the same updates as on one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from pydantic import BaseModel, Field

from parley.agents import DEFAULT_MODEL

System = Literal["Default", "SFT", "RLDF", "RLAIF", "CoT", "FairThinking"]
SYSTEMS: tuple[System, ...] = get_args(System)
"""Systems in order of evaluation: trained ones first, the costliest prompting methods last."""
TRAINED = {"SFT": "sft", "RLDF": "rl", "RLAIF": "rlaif/rl"}
"""The folder of each trained system, within `out`."""
PAPERS_PAIRS = 5000
"""The number of pairs that the paper's figures 8 to 12 find best."""
PAPERS_CATEGORIES = [
    "Age",
    "Disability_status",
    "Gender_identity",
    "Nationality",
    "Physical_appearance",
    "Race_ethnicity",
]


class SettingsTable(BaseModel, extra="forbid", frozen=True):
    """A table of the config; unknown keys are refused."""


class TrainerSettings(SettingsTable):
    """Settings of every stage that trains."""

    num_train_epochs: float = Field(1.0, gt=0, description="passes over the data")
    batch_size: int = Field(16, ge=1, description="examples per update, over all devices")
    learning_rate: float = Field(2e-5, gt=0, description="peak learning rate")
    max_steps: int | None = Field(None, ge=1, description="number of updates (overrides num_train_epochs)")


class SftSettings(TrainerSettings):
    """Supervised fine-tuning. The paper gives no numbers for this stage; these are ours."""

    data: str | None = Field(None, description="an export with --format sft (default: the chosen answers of the pairs)")


class RewardSettings(TrainerSettings):
    """The reward model."""

    batch_size: int = Field(32, ge=1, description="pairs per update, over all devices")
    learning_rate: float = Field(3e-5, gt=0, description="peak learning rate")


class RlSettings(TrainerSettings):
    """Reinforcement learning."""

    # RLOO and not the paper's PPO: the same objective, with a leave-one-out mean in place of a critic, and a trainer
    # that can resume; trl dropped PPO in 1.13.
    algorithm: Literal["rloo", "ppo"] = Field("rloo", description="rloo, or the paper's ppo (needs trl 1.12.0)")
    topics_from: str = Field(
        "shipped",
        description="topics in addition to the debated ones: shipped (same bias types), a .txt file, or debates (none)",
    )
    batch_size: int = Field(4, ge=1, description="prompts per update, over all devices")
    learning_rate: float = Field(5e-6, gt=0, description="peak learning rate")
    beta: float = Field(0.05, ge=0, description="weight of the KL divergence from the SFT model")
    num_generations: int = Field(4, ge=2, description="completions sampled per prompt (rloo)")
    max_completion_length: int = Field(128, ge=4, description="maximum tokens per completion")
    allow_weak_reward: bool = Field(
        False, description="train even if the reward model ranks held-out pairs no better than chance"
    )
    max_kl: float | None = Field(
        20.0, gt=0, description="stop when the KL divergence from the SFT model exceeds this, in nats per completion"
    )


class EvaluationSettings(SettingsTable):
    """The data and judges of the evaluation."""

    bbq: str | None = Field(None, description="BBQ: a folder, a .csv or hub (without it, BBQ is not run)")
    bbq_limit: int | None = Field(None, ge=1, description="number of BBQ rows, spread evenly (default: all)")
    categories: list[str] | None = Field(
        PAPERS_CATEGORIES, description="BBQ's categories (default: the paper's six; all: every one)"
    )
    examples: bool = Field(False, description="show the judges examples of low, middle and high scores")
    judges: list[str] = Field([], description="models that score BS, CE and LS (without one, they are not scored)")
    topics: int = Field(100, ge=1, description="maximum number of held-out topics whose answers are scored")
    max_tokens: int = Field(200, ge=16, description="maximum tokens per reply to BBQ and per scored answer")
    budget_cost: float | None = Field(None, ge=0, description="stop each run at this many US dollars")
    systems: list[System] = Field(
        list(SYSTEMS), description="systems to compare, in this order; Default must be one of them"
    )
    models: dict[str, str] = Field(
        {}, description="models by system, if a server has them loaded already: RLDF = 'vllm/rl?base_url=…'"
    )


class RlaifSettings(SettingsTable):
    """The baseline whose pairs are labelled by a model."""

    labeller: str | None = Field(None, description="the model that says which of two answers is less biased")
    topics: int | None = Field(None, ge=1, description="number of training topics (default: all)")


class AblationSettings(SettingsTable):
    """Each list is an ablation: training is repeated at each of its values, on part of the data."""

    pairs: list[int] = Field([], description="numbers of training pairs")
    topics: list[int] = Field([], description="numbers of training topics")
    rounds: list[int] = Field([], description="only statements of the first N rounds")
    roles: list[int] = Field([], description="only statements of the first N speakers of each bias type")
    data: dict[str, str] = Field({}, description="other datasets by name, of debates with other settings")


class TrainConfig(SettingsTable):
    """The whole config: data, base model, and a table for each stage."""

    base: str = Field(DEFAULT_MODEL, description="the model to train: local/smollm2, a folder, or a name on the hub")
    data: str = Field(description="pairs: the folder of `parley export --format trl`, or one .jsonl file of such rows")
    out: str = Field("trained", description="the folder to write to")
    sft_model_path: str | None = Field(None, description="a finished SFT folder to start from (default: OUT/sft)")
    eos_token: str | None = Field(None, description="the token that ends an answer (default: the tokenizer's)")
    pad_token: str | None = Field(None, description="a token of the vocabulary to pad with (default: the tokenizer's)")
    max_length: int = Field(2048, ge=16, description="maximum tokens of prompt and answer together, cut on the right")
    per_device_train_batch_size: int | None = Field(
        None, ge=1, description="maximum examples per pass on a device; gradients accumulate (default: no limit)"
    )
    bf16: bool | None = Field(None, description="train in bf16 mixed precision (default: where the GPU supports it)")
    gradient_checkpointing: bool = Field(
        False, description="recompute activations in the backward pass: less memory, about a third slower"
    )
    use_peft: bool = Field(False, description="train LoRA adapters; a stage's result is then its adapter, a few MB")
    lora_r: ClassVar[int] = 8
    lora_alpha: ClassVar[int] = 16
    lora_target_modules: ClassVar[list[str]] = ["q_proj", "v_proj"]
    min_pairs: int = Field(100, ge=2, description="refuse to train on fewer pairs (the paper asks for 5,000)")
    pairs: int | None = Field(None, ge=2, description="number of training pairs, drawn by the seed (default: all)")
    topics: int | None = Field(None, ge=1, description="number of training topics, drawn by the seed (default: all)")
    rounds: int | None = Field(None, ge=1, description="only statements of the first N rounds")
    roles: int | None = Field(None, ge=1, description="only statements of the first N speakers of a bias type")
    save_steps: int = Field(100, ge=1, description="updates between two checkpoints")
    seed: int = Field(0, ge=0, description="seed of every random choice")
    seeds: int = Field(
        1, ge=1, description="train and evaluate this many times, with seed, seed + 1, …, each in OUT/seed-N"
    )
    sft: SftSettings = SftSettings()
    reward: RewardSettings = RewardSettings()
    rl: RlSettings = RlSettings()
    evaluate: EvaluationSettings = EvaluationSettings()
    rlaif: RlaifSettings = RlaifSettings()
    ablate: AblationSettings = AblationSettings()


def tables_of() -> dict[str, type[SettingsTable]]:
    """The tables of the config by name."""
    return {
        name: type(info.default)
        for name, info in TrainConfig.model_fields.items()
        if isinstance(info.default, SettingsTable)
    }


def seed_configs(config: TrainConfig) -> list[TrainConfig]:
    """One config per seed, each with its own folder."""
    return [
        config.model_copy(update={"seed": seed, "seeds": 1, "out": f"{config.out}/seed-{seed}"})
        for seed in range(config.seed, config.seed + config.seeds)
    ]


WITHOUT_EFFECT = {
    "out", "seeds", "save_steps", "per_device_train_batch_size", "rl.allow_weak_reward",
}  # fmt: skip
"""Settings that do not change results, rounding aside: folders, speed, and whether RL starts."""
Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage of training.

    Args:
        name: Its name on the command line, in the config, and of its folder.
        help: A line of help.
        train: Takes a TrainingContext, the stage's settings and a StageRun; trains, and returns further entries for
            the manifest.
        summary: The result in words, from the manifest.
        needs: Stages whose results it uses; it starts from the weights of the first, and depends on the settings of
        all.
        prompts: Whether it samples answers to the prompts of topics, so that its result depends on them.
        policy: Whether its result is a model that answers, which can be run and evaluated.
    """

    name: str
    help: str
    train: Callable[..., Facts]
    summary: Callable[[Facts], Sequence[str]]
    needs: tuple[Stage, ...] = ()
    prompts: bool = False
    policy: bool = True


def stage_settings(config: TrainConfig, stage: Stage) -> dict[str, Any]:
    """All settings that a stage's result depends on, as plain values."""
    values = config.model_dump(mode="json")
    tables = {name: values.pop(name) for name in tables_of()}
    for each in (*stage.needs, stage):
        values |= {f"{each.name}.{key}": value for key, value in tables[each.name].items()}
    return {key: value for key, value in values.items() if key not in WITHOUT_EFFECT}
