"""A language model of half a million parameters with its own tokenizer, and pairs with a planted preference."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""ChatML, with a line break after the end token, which a policy never writes."""
THINGS = ("buses", "parks", "schools", "phones", "gardens", "songs", "markets", "trains", "books", "games")
PLACES = ("here", "abroad", "in town", "at home", "by the sea", "at work")
KIND = ("everyone", "each person", "all people", "anyone")
UNKIND = ("those people", "that kind", "such types", "that lot")


def topics(count: int) -> list[str]:
    return [f"Are {THINGS[n % 10]} {PLACES[n // 10 % 6]} good, case {n}?" for n in range(count)]


def statement(rng: random.Random, kind: bool, words: int | None = None) -> str:
    """A sentence about whom a thing serves: about everyone, or about "those people"."""
    who = rng.choice(KIND if kind else UNKIND)
    tail = " ".join(rng.choice(("now", "then", "often", "well", "gladly")) for _ in range(words or rng.randint(1, 4)))
    return f"I say {who} can use it {tail}."


def row(number: int, topic: str, chosen: str, rejected: str) -> dict[str, Any]:
    """A row of `parley export --format trl-explicit`."""
    speaker = ("Sixty", "Forty", "Twenty")[number % 3]
    return {
        "id": f"p{number}",
        "prompt": [{"role": "user", "content": f"What do you think about this? {topic}"}],
        "chosen": [{"role": "assistant", "content": chosen}],
        "rejected": [{"role": "assistant", "content": rejected}],
        "score_chosen": 1.0,
        "score_rejected": 8.0,
        "meta": {
            "bias": "age",
            "topic": topic,
            "speaker_chosen": speaker,
            "speaker_rejected": speaker,
            "round_chosen": 1 + number % 5,
            "round_rejected": 1 + number % 4,
        },
    }


@pytest.fixture(scope="session")
def planting() -> SimpleNamespace:
    """The helpers that planted data are made with."""
    return SimpleNamespace(topics=topics, statement=statement, row=row, kind=KIND, unkind=UNKIND)


@pytest.fixture
def planted(tmp_path: Path) -> Callable[..., Path]:
    """Writes a dataset of pairs in which the kind statement is chosen: `planted(count)`."""

    def write(count: int = 300) -> Path:
        rng = random.Random(7)
        listed = topics(count // 2)
        folder = tmp_path / "pairs"
        folder.mkdir(exist_ok=True)
        rows = []
        for number in range(count):
            rows.append(row(number, listed[number % len(listed)], statement(rng, True), statement(rng, False)))
        held_out = set(listed[-(len(listed) // 4) :])
        parts: dict[str, list[dict[str, Any]]] = {"train": [], "validation": [], "test": []}
        for pair in rows:
            topic = pair["meta"]["topic"]
            split = "train" if topic not in held_out else ("validation", "test")[listed.index(topic) % 3 == 0]
            parts[split].append(pair)
        for split, part in parts.items():
            (folder / f"{split}.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in part), "utf-8")
        return folder

    return write


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model, in a folder as transformers saves it. Its weights are random."""
    rng = random.Random(1)
    texts = [f"What do you think about this? {topic}" for topic in topics(300)]
    texts += [statement(rng, bool(n % 2)) for n in range(600)]
    texts += [
        "system user assistant 0 1 2 3 4 5 6 7 8 9 As a 60-year-old, as someone older, Sixty Forty Twenty said"
    ] * 5
    return save_tiny(tmp_path_factory.mktemp("tiny"), texts)


def save_tiny(folder: Path, texts: list[str], layers: int = 4) -> Path:
    """A model of half a million parameters with a tokenizer for these texts."""
    torch = pytest.importorskip("torch", reason="training is tested where the extra training is installed")
    pytest.importorskip("trl", reason="training is tested where the extra training is installed")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", bos_token="<|im_start|>", pad_token="<|endoftext|>"
    )
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(fast),
            hidden_size=96,
            intermediate_size=256,
            num_hidden_layers=layers,
            num_attention_heads=6,
            num_key_value_heads=3,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            bos_token_id=fast.bos_token_id,
            eos_token_id=fast.eos_token_id,
            pad_token_id=fast.pad_token_id,
        )
    )
    model.save_pretrained(folder)
    return folder
