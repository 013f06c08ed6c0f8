"""Memory and time of training before anything is trained: `parley train all --config qwen1.5-7b --dry-run`.

Memory is 16 bytes per trained parameter (the weight, its gradient, Adam's two moments), 4 per frozen one, and what
the backward pass needs: 40·hidden + 8·intermediate bytes per token and layer in bf16, or with gradient checkpointing
4·hidden per layer, and the whole of one. RL adds the reference (without LoRA), the reward model in bf16, and the logits
of completions. `benchmarks/README.md` compares this with what was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from pydantic import BaseModel

from parley.agents.models.request import estimate_tokens
from parley.base.errors import ConfigError
from parley.base.toml import parse_toml
from parley.training import device
from parley.training.base_model import base_folder
from parley.training.config import TrainConfig
from parley.training.pairs import low_bias, read_pairs, read_sft
from parley.training.prompts import read_prompts

GIB = 2**30
TEMPLATE_TOKENS = 40
"""Tokens that a chat template adds to prompt and answer: SmolLM2's adds 38 with its system prompt, most fewer."""
FLOPS = 0.4 * 989e12
"""Operations per second of one H200: 40% of its peak in bf16, which models of billions of parameters reach."""
SECONDS_PER_LAYER = 0.008
"""Per layer, forward and backward: what an update takes at least (SmolLM2 on an H200: 0.2 to 0.3 s)."""
SECONDS_PER_TOKEN = 0.001
"""Per layer and token that transformers generates, whatever the number of completions (SmolLM2 on an H200)."""
ASSUMED_PAIRS, ASSUMED_TOKENS = 5000, 240
"""Where there are no pairs yet: the paper's smallest number, and statements of 120 words with their prompt."""
ESTIMATED = ("sft", "reward", "rl")


class Shape(BaseModel, frozen=True):
    """A model's shape, by the names of transformers' config.json."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    vocab_size: int
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    tie_word_embeddings: bool = False

    @property
    def widths(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of a layer's matrices."""
        head = self.head_dim or self.hidden_size // self.num_attention_heads
        query, key = self.num_attention_heads * head, (self.num_key_value_heads or self.num_attention_heads) * head
        hidden, inner = self.hidden_size, self.intermediate_size
        attention = {"q_proj": (hidden, query), "k_proj": (hidden, key), "v_proj": (hidden, key)}
        mlp = {"gate_proj": (hidden, inner), "up_proj": (hidden, inner), "down_proj": (inner, hidden)}
        return {**attention, "o_proj": (query, hidden), **mlp}

    @property
    def parameters(self) -> int:
        layer = sum(rows * columns for rows, columns in self.widths.values()) + 2 * self.hidden_size
        embeddings = self.vocab_size * self.hidden_size * (1 if self.tie_word_embeddings else 2)
        return self.num_hidden_layers * layer + embeddings + self.hidden_size

    def adapters(self, rank: int, targets: Sequence[str]) -> int:
        """Parameters of LoRA adapters."""
        per_layer = sum(rank * sum(width) for name, width in self.widths.items() if name in targets)
        return self.num_hidden_layers * per_layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What is trained on, counted in texts and tokens."""

    pairs: int
    statements: int
    prompts: int
    mean: float
    """Tokens of prompt and answer, on average."""
    longest: int
    prompt: int
    """Tokens of the longest prompt."""
    assumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a stage takes on one device."""

    stage: str
    updates: int
    memory_gib: float
    seconds: float


def shape_of(base: str) -> Shape:
    """The shape of a base model: a folder's, one of `shapes.toml`, or the hub's config.json."""
    if shape := _known().get(base.lower()):
        return shape
    try:
        return Shape.model_validate_json(_config_file(base).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the shape of {base} is not known, so nothing can be estimated: name a folder with its config.json "
            f"({type(error).__name__})"
        ) from None


@cache
def _known() -> dict[str, Shape]:
    table = parse_toml(files("parley.training").joinpath("shapes.toml").read_text("utf-8"))
    return {name: Shape.model_validate(shape) for name, shape in table.items()}


def _config_file(base: str) -> Path:
    folder = Path(base_folder(base))
    if folder.is_dir() or find_spec("huggingface_hub") is None:
        return folder / "config.json"
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(str(folder), "config.json"))


def data_of(config: TrainConfig) -> Data:
    """The sizes of a config's data, at four characters per token; the paper's if there are no pairs yet."""
    if not Path(config.data).exists():
        tokens = min(ASSUMED_TOKENS + TEMPLATE_TOKENS, config.max_length)
        number = config.pairs or ASSUMED_PAIRS
        return Data(pairs=number, statements=number, prompts=config.topics or 2000, mean=tokens, longest=tokens,
                    prompt=60 + TEMPLATE_TOKENS, assumed=True)  # fmt: skip
    pairs = read_pairs(config)
    prompts = set(read_prompts(config, pairs).train.values())
    examples = read_sft(Path(config.sft.data)) if config.sft.data else list(low_bias(pairs.train))
    texts = [(pair.prompt, side.text) for pair in pairs.train for side in (pair.chosen, pair.rejected)]
    lengths = [
        min(estimate_tokens(prompt + text) + TEMPLATE_TOKENS, config.max_length) for prompt, text in (*texts, *examples)
    ]
    return Data(
        pairs=len(pairs.train),
        statements=len(examples),
        prompts=len(prompts),
        mean=sum(lengths) / len(lengths),
        longest=max(lengths),
        prompt=max(map(estimate_tokens, prompts)) + TEMPLATE_TOKENS,
    )


def estimates(config: TrainConfig, stages: Sequence[str], data: Data) -> Iterator[Estimate]:
    """Memory and time of each stage; ConfigError if the base's shape is not known.

    Args:
        config: The whole config.
        stages: Some of sft, reward and rl.
        data: Sizes of its data, from `data_of`.
    """
    shape = shape_of(config.base)
    for stage in stages:
        yield (_rl if stage == "rl" and config.rl.algorithm != "dpo" else _on_texts)(stage, config, shape, data)


def trained(config: TrainConfig, shape: Shape) -> int:
    """Number of parameters that are trained."""
    return shape.adapters(config.lora_r, config.lora_target_modules) if config.use_peft else shape.parameters


def _model(config: TrainConfig, shape: Shape) -> float:
    """Bytes of the model that is trained, with gradients and the optimizer's state."""
    changed = trained(config, shape)
    return 16 * changed + (4 * shape.parameters if config.use_peft else 0)


def _activations(config: TrainConfig, shape: Shape, tokens: float) -> float:
    """Bytes that the backward pass of so many tokens needs."""
    layer = 40 * shape.hidden_size + 8 * shape.intermediate_size
    if config.gradient_checkpointing:
        return tokens * (4 * shape.hidden_size * shape.num_hidden_layers + layer)
    return tokens * layer * shape.num_hidden_layers


def _updating(config: TrainConfig, shape: Shape, tokens: float, passes: int) -> float:
    """Seconds of an update. Frozen weights have no gradients, and checkpointing computes the forward pass twice."""
    forwards = (2 if config.use_peft else 3) + config.gradient_checkpointing  # a backward pass is one or two
    return max(2 * forwards * shape.parameters * tokens / FLOPS, passes * shape.num_hidden_layers * SECONDS_PER_LAYER)


def _forward(shape: Shape, tokens: float, passes: int) -> float:
    """Seconds of a pass without gradients, about a third of an update."""
    return max(2 * shape.parameters * tokens / FLOPS, passes * shape.num_hidden_layers * SECONDS_PER_LAYER / 3)


def _updates(settings_steps: int | None, epochs: float, items: int, batch: int) -> int:
    return settings_steps or max(1, round(epochs * -(-items // batch)))


def _on_texts(stage: str, config: TrainConfig, shape: Shape, data: Data) -> Estimate:
    """SFT on statements; the reward model and DPO on both texts of pairs."""
    table = getattr(config, stage)
    items, sides = (data.statements, 1) if stage == "sft" else (data.pairs, 2)
    batch = device.batch_arguments(table.batch_size, config, f"{stage}.batch_size")
    texts, passes = sides * batch["per_device_train_batch_size"], batch["gradient_accumulation_steps"]
    updates = _updates(table.max_steps, table.num_train_epochs, items, table.batch_size)
    memory = _model(config, shape) + _activations(config, shape, texts * data.longest)
    seconds = _updating(config, shape, texts * passes * data.mean, passes)
    if stage == "rl":  # DPO: a reference, its pass, and the logits of both texts
        memory += _others(config, shape, texts * data.longest)
        seconds += _forward(shape, texts * passes * data.mean, passes)
    return Estimate(stage=stage, updates=updates, memory_gib=memory / GIB, seconds=updates * seconds)


def _rl(stage: str, config: TrainConfig, shape: Shape, data: Data) -> Estimate:
    """RLOO, GRPO and PPO: completions are generated, scored, and learnt from."""
    rl = config.rl
    per_prompt = 1 if rl.algorithm == "ppo" else rl.num_generations
    batch = device.batch_arguments(rl.batch_size * per_prompt, config, "rl.batch_size × rl.num_generations")
    texts, passes = batch["per_device_train_batch_size"], batch["gradient_accumulation_steps"]
    longest = data.prompt + rl.max_completion_length
    updates = _updates(rl.max_steps, rl.num_train_epochs, data.prompts, rl.batch_size)
    memory = (
        _model(config, shape) * (2 if rl.algorithm == "ppo" else 1)  # PPO's critic
        + _activations(config, shape, texts * longest)
        + _others(config, shape, texts * rl.max_completion_length)
    )
    tokens = texts * passes * longest
    scoring = 2 * _forward(shape, tokens, passes)  # by the reference and by the reward model
    generating = rl.max_completion_length * shape.num_hidden_layers * SECONDS_PER_TOKEN / rl.updates_per_generation
    seconds = _updating(config, shape, tokens, passes) + scoring + generating
    return Estimate(stage=stage, updates=updates, memory_gib=memory / GIB, seconds=updates * seconds)


def _others(config: TrainConfig, shape: Shape, tokens: float) -> float:
    """Bytes of the reference (none with LoRA), the reward model, and logits with their gradients."""
    reference = 0 if config.use_peft else 4 * shape.parameters
    return reference + 2 * shape.parameters + 6 * shape.vocab_size * tokens
