"""Batched read-outs of the next token: whatever prompts share a pass, each has the logits that it has alone."""

from __future__ import annotations

import random
from typing import Any

import pytest

WHY = "models on transformers are tested where parley-autogen[hf] is installed"
torch = pytest.importorskip("torch", reason=WHY)
transformers = pytest.importorskip("transformers", reason=WHY)

from parley.agents.models.next_token import next_token_logits, prefix_trees, reads_trees  # noqa: E402

VOCABULARY = 97
SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 3,
    "num_attention_heads": 6, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


def prompts() -> list[list[int]]:
    """Three situations under labels of different lengths, one prompt twice, one that begins another, a short one."""
    rng = random.Random(1)
    texts = [[rng.randrange(VOCABULARY) for _ in range(length)] for length in (40, 5, 61)]
    labelled = [[*text, *range(label, label + label % 4 + 1), 3] for text in texts for label in range(10, 16)]
    rng.shuffle(labelled)
    return [*labelled, labelled[0], labelled[1][:7], [9]]


def causal_model(family: str, **options: Any) -> Any:
    """A model with random weights."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**SIZES, **options)
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # as initialised, attention hardly matters
            parameter.mul_(10 if parameter.ndim > 1 else 1)
    return model


def alone(model: Any, prompt: list[int]) -> Any:
    return model(torch.tensor([prompt])).logits[0, -1].detach()


@pytest.mark.parametrize(("family", "max_tokens"), [("Llama", 10**6), ("Qwen2", 150)])
def test_each_prompt_has_the_logits_that_it_has_alone(family: str, max_tokens: int) -> None:
    model = causal_model(family)
    assert reads_trees(model)
    texts = prompts()
    together = next_token_logits(model, texts, max_tokens)
    expected = torch.stack([alone(model, text) for text in texts])
    assert together.shape == (len(texts), VOCABULARY)
    assert torch.allclose(together, expected, atol=1e-3)
    assert float((expected[0] - expected[1]).abs().max()) > 0.1, "logits of different prompts differ"
    assert torch.equal(together, next_token_logits(model, texts, max_tokens)), "the same numbers twice"


def test_they_are_those_of_padded_batches_too() -> None:
    model, texts = causal_model("Qwen2"), prompts()
    read = next_token_logits(model, texts)
    longest = max(map(len, texts))
    right = torch.tensor([text + [0] * (longest - len(text)) for text in texts])
    ends = torch.tensor([len(text) - 1 for text in texts])
    assert torch.allclose(read, model(right).logits[torch.arange(len(texts)), ends].detach(), atol=1e-3)
    left = torch.tensor([[0] * (longest - len(text)) + text for text in texts])
    mask = torch.tensor([[0] * (longest - len(text)) + [1] * len(text) for text in texts])
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    output = model(left, attention_mask=mask, position_ids=positions)
    assert torch.allclose(read, output.logits[:, -1].detach(), atol=1e-3)


def test_replies_are_generated_as_before() -> None:
    model = causal_model("Llama")
    start = torch.tensor([[5, 6, 7]])
    before = model.generate(start, max_new_tokens=5, do_sample=False)
    next_token_logits(model, prompts())
    assert torch.equal(model.generate(start, max_new_tokens=5, do_sample=False), before)


def test_layers_that_see_only_a_window_are_not_read_so() -> None:
    assert not reads_trees(causal_model("Mistral", sliding_window=8))
    assert reads_trees(causal_model("Mistral", sliding_window=None))


def test_what_prompts_begin_with_alike_is_read_once_and_nothing_is_padded() -> None:
    shared, other = [*range(20)], [*range(50, 60)]
    texts = [[*shared, 1, 2], [*other, 1], [*shared, 1, 3], [*shared], [*other, 1]]
    ((rows, tree),) = prefix_trees(texts, 1000, 1000)
    # 20 shared tokens, 1 below them, 2 and 3 below that; and the other text once.
    assert len(tree.tokens) == 20 + 1 + 2 + 11
    assert [[tree.tokens[place] for place in places] for places in tree.prompts] == [texts[row] for row in rows]
    assert [tree.positions[place] for place in tree.prompts[-1]] == list(range(len(texts[rows[-1]])))


@pytest.mark.parametrize(("max_tokens", "max_padded"), [(100, 10**6), (10**6, 300), (30, 60)])
def test_passes_keep_within_their_limits(max_tokens: int, max_padded: int) -> None:
    texts = prompts()
    trees = list(prefix_trees(texts, max_tokens, max_padded))
    assert len(trees) > 1
    assert sorted(row for rows, _ in trees for row in rows) == list(range(len(texts)))
    for rows, tree in trees:
        assert [[tree.tokens[place] for place in places] for places in tree.prompts] == [texts[row] for row in rows]
        assert len(rows) == 1 or (len(tree.tokens) <= max_tokens and len(rows) * tree.longest <= max_padded)
