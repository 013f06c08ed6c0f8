"""What training can be told: one table with a part for each stage. Defaults are the paper's where the paper has one.

base = "local/smollm2"
data = "age-pairs"

[reward]
learning_rate = 3e-5

Batches are counted over all devices: whoever trains on eight of them gets the same updates as on one.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from parley.agents import DEFAULT_MODEL

Algorithm = Literal["rloo", "grpo", "dpo", "ppo"]
System = Literal["Default", "SFT", "RLDF", "RLAIF", "CoT", "FairThinking"]
SYSTEMS: tuple[System, ...] = get_args(System)
"""In the order they are evaluated: the question of training first, dear ways of asking last."""
PAPERS_CATEGORIES = [
    "Age",
    "Disability_status",
    "Gender_identity",
    "Nationality",
    "Physical_appearance",
    "Race_ethnicity",
]


class Part(BaseModel):
    """A part of the config; a key it does not know is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SftConfig(Part):
    """The paper gives no numbers for this stage; these are ours."""

    data: str | None = Field(None, description="an export with --format sft (default: what the pairs chose)")
    epochs: float = Field(1.0, gt=0, description="how often the data is gone through")
    batch: int = Field(16, ge=1, description="examples an update, over all devices")
    learning_rate: float = Field(2e-5, gt=0, description="highest learning rate")
    steps: int | None = Field(None, ge=1, description="stop after so many updates")


class RewardConfig(Part):
    """The reward model."""

    epochs: float = Field(1.0, gt=0, description="how often the data is gone through")
    batch: int = Field(32, ge=1, description="pairs an update, over all devices")
    learning_rate: float = Field(3e-5, gt=0, description="highest learning rate")
    steps: int | None = Field(None, ge=1, description="stop after so many updates")


class RlConfig(Part):
    """Reinforcement learning."""

    algorithm: Algorithm = Field("rloo", description="rloo, grpo, dpo, or the paper's ppo (with trl 1.12.0)")
    topics_from: str = Field(
        "shipped", description="topics beside the debates' own: shipped (those of their bias types), a .txt, or debates"
    )
    epochs: float = Field(1.0, gt=0, description="how often the prompts are gone through")
    batch: int = Field(4, ge=1, description="prompts an update, over all devices (dpo: pairs)")
    learning_rate: float = Field(5e-6, gt=0, description="highest learning rate")
    steps: int | None = Field(None, ge=1, description="stop after so many updates")
    beta: float = Field(0.05, ge=0, description="weight of the divergence from the SFT model")
    samples: int = Field(4, ge=2, description="answers sampled for each prompt (rloo, grpo)")
    temperature: float = Field(1.0, gt=0, description="of sampling; at 0 all answers are alike, and nothing is learnt")
    max_tokens: int = Field(128, ge=4, description="length of an answer, at most")
    missing_end: float = Field(1.0, ge=0, description="taken off the reward of an answer that does not come to an end")
    max_kl: float | None = Field(
        20.0, gt=0, description="stop when an answer's divergence from the SFT model passes this, in nats"
    )
    ahead: int = Field(1, ge=1, description="updates whose answers are generated at once (rloo, grpo)")
    replay: bool = Field(
        True, description="on CUDA: record one step of writing and replay it (faster for small models)"
    )
    probe_every: int = Field(20, ge=1, description="updates between two looks at answers to held-out prompts")
    probe_prompts: int = Field(32, ge=2, description="how many held-out prompts are looked at")


class EvaluateConfig(Part):
    """What is run before and after, and who judges it."""

    bbq: str | None = Field(None, description="BBQ: a folder, a .csv or hub (without it, BBQ is not run)")
    bbq_limit: int | None = Field(None, ge=1, description="so many rows of BBQ, spread evenly")
    bbq_max_tokens: int = Field(200, ge=16, description="length of one reply to BBQ, at most")
    categories: list[str] | None = Field(
        PAPERS_CATEGORIES, description="BBQ's categories (default: the paper's six; all: every one)"
    )
    judges: list[str] = Field([], description="models that score BS, CE and LS (without one, they are not scored)")
    topics: int = Field(100, ge=1, description="held-out topics whose answers are scored, at most")
    max_tokens: int = Field(200, ge=16, description="length of an answer that is scored, at most")
    temperature: float = Field(0.7, ge=0, le=2, description="of the answers that are scored")
    budget_cost: float | None = Field(None, ge=0, description="stop each run after so many US dollars")
    systems: list[System] = Field(
        list(SYSTEMS), description="which are compared, in this order; Default must be one of them"
    )
    rlaif: str | None = Field(None, description="the folder of an RLAIF policy (default: the one trained here, if any)")


class RlaifConfig(Part):
    """The baseline whose pairs a model labels."""

    labeller: str | None = Field(None, description="the model that says which of two answers is less biased")
    topics: int | None = Field(None, ge=1, description="so many of the training topics (default: all)")
    pairs: int = Field(1, ge=1, description="pairs of answers for each topic")
    max_tokens: int = Field(160, ge=16, description="length of an answer, at most")
    temperature: float = Field(1.0, gt=0, le=2, description="of the two answers")


class AblateConfig(Part):
    """Each list is one ablation: everything is trained again at each of its values, on less of the data."""

    pairs: list[int] = Field([], description="numbers of training pairs")
    topics: list[int] = Field([], description="numbers of training topics")
    rounds: list[int] = Field([], description="only statements of the first so many rounds")
    roles: list[int] = Field([], description="only statements of the first so many speakers of each bias type")
    data: dict[str, str] = Field({}, description="other datasets by name: debates that were held with other settings")


class TrainConfig(Part):
    """All of a training: its data, its base, and its stages."""

    base: str = Field(DEFAULT_MODEL, description="what is trained: local/smollm2, a folder, or a name on the hub")
    data: str = Field(description="pairs: the folder of `parley export --format trl`, or one .jsonl file of such rows")
    out: str = Field("trained", description="the folder everything is written to")
    begin: str | None = Field(None, description="a finished SFT folder to begin from (default: that of this config)")
    chat_template: str | None = Field(None, description="a .jinja file, for a tokenizer that has none")
    end_token: str | None = Field(None, description="the token that ends an answer, if the tokenizer names another")
    pad_token: str | None = Field(None, description="a token of the vocabulary to pad with, if the tokenizer has none")
    max_length: int = Field(2048, ge=16, description="tokens of prompt and answer together, cut on the right")
    micro_batch: int | None = Field(None, ge=1, description="most examples a device holds at once (default: the batch)")
    precision: Literal["auto", "fp32", "bf16"] = Field("auto", description="auto: bf16 where the device is made for it")
    recompute: bool = Field(False, description="recompute activations: less memory, about a third slower")
    lora: bool = Field(False, description="train low-rank adapters, which are merged into the model at the end")
    lora_rank: int = Field(8, ge=1, description="rank of the adapters")
    lora_alpha: int = Field(16, ge=1, description="their scale")
    lora_dropout: float = Field(0.05, ge=0, lt=1, description="their dropout")
    lora_modules: list[str] = Field(["q_proj", "v_proj"], description="the layers they stand beside")
    splits: list[float] = Field([0.8, 0.1, 0.1], description="shares of topics, where the data is one file")
    least_pairs: int = Field(100, ge=2, description="refuse to train on fewer pairs (the paper asks for 5,000)")
    pairs: int | None = Field(None, ge=2, description="only so many training pairs, drawn by the seed")
    topics: int | None = Field(None, ge=1, description="only so many training topics, drawn by the seed")
    rounds: int | None = Field(None, ge=1, description="only statements of the first so many rounds")
    roles: int | None = Field(None, ge=1, description="only statements of the first so many speakers of a bias type")
    save_every: int = Field(100, ge=1, description="updates between two checkpoints")
    gguf: bool = Field(True, description="also write model.gguf, with which local/FOLDER runs everywhere")
    gguf_type: Literal["f16", "f32"] = Field(
        "f32", description="of its weights; f16 is half the size, and says other words"
    )
    answers: Literal["local", "hf"] = Field(
        "local", description="how models answer in evaluations and RLAIF: local (llama.cpp), hf (batches on a GPU)"
    )
    seed: int = Field(0, ge=0, description="of every random choice")
    sft: SftConfig = SftConfig()
    reward: RewardConfig = RewardConfig()
    rl: RlConfig = RlConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    rlaif: RlaifConfig = RlaifConfig()
    ablate: AblateConfig = AblateConfig()


PARTS: dict[str, type[Part]] = {
    "sft": SftConfig,
    "reward": RewardConfig,
    "rl": RlConfig,
    "evaluate": EvaluateConfig,
    "rlaif": RlaifConfig,
    "ablate": AblateConfig,
}
"""The parts by name, each a table of the file; their flags are --PART-KEY."""

MAKES: dict[str, tuple[str, ...]] = {
    "sft": ("sft",),
    "reward": ("sft", "reward"),
    "rl": ("sft", "reward", "rl"),
}
"""Which parts of the config a stage's result depends on."""
ELSEWHERE = {"out", "answers", "gguf", "gguf_type", "save_every", "micro_batch", "evaluate", "ablate", "rlaif"}
"""What changes where things go and how fast, not what comes out."""


def made_by(config: TrainConfig, stage: str) -> dict[str, Any]:
    """All that a stage's result depends on, as plain values."""
    whole = config.model_dump(mode="json")
    parts = {name: whole.pop(name) for name in PARTS}
    settings = {key: value for key, value in whole.items() if key not in ELSEWHERE}
    parts["rl"].pop("replay")  # the same answers, rounding aside
    return {**settings, **{f"{part}.{key}": value for part in MAKES[stage] for key, value in parts[part].items()}}
