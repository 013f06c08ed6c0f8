"""`hf/FOLDER`: calls are batched, and each gets the reply that it would get alone."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from autogen_core.models import AssistantMessage, LLMMessage, SystemMessage, UserMessage
from pydantic import BaseModel

WHY = "models on transformers are tested where the extra training is installed"
torch = pytest.importorskip("torch", reason=WHY)
transformers = pytest.importorskip("transformers", reason=WHY)
pytest.importorskip("trl", reason=WHY)
pytest.importorskip("llguidance", reason=WHY)

from parley.agents import ConfigError, ModelError, ParleyError, model, scale, structured_reply  # noqa: E402
from parley.agents.models.next_token import prefix_trees  # noqa: E402


def prompt(text: str) -> list[LLMMessage]:
    return [UserMessage(content=text, source="user")]


def replies(folder: Path, calls: Sequence[tuple[list[LLMMessage], dict[str, Any]]], **client_options: Any) -> list[Any]:
    """The replies to calls that are made concurrently."""

    async def create_all() -> list[Any]:
        client = model(f"hf/{folder}", **client_options)
        try:
            return list(
                await asyncio.gather(
                    *(client.create(messages, extra_create_args=options) for messages, options in calls)
                )
            )
        finally:
            await client.close()

    return asyncio.run(create_all())


def test_a_reply_does_not_depend_on_the_rest_of_its_batch(tiny: Path) -> None:
    calls = [
        (prompt("Are buses good? " * (1 + n)), {"seed": n, "temperature": 1.0 if n % 3 else 0.0, "max_tokens": 12})
        for n in range(9)
    ]
    together = [reply.content for reply in replies(tiny, calls)]
    alone = [reply.content for reply in replies(tiny, calls, max_connections=1)]
    assert together == alone
    reseeded = [(messages, options | {"seed": options["seed"] + 100}) for messages, options in calls]
    sampled = [reply.content for reply in replies(tiny, reseeded)]
    assert [new == old for new, old in zip(sampled, together, strict=True)] == [n % 3 == 0 for n in range(9)]


def test_greedy_replies_are_those_of_transformers(tiny: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, plain = AutoTokenizer.from_pretrained(tiny), AutoModelForCausalLM.from_pretrained(tiny)
    (reply,) = replies(tiny, [(prompt("Are parks good?"), {"temperature": 0.0, "max_tokens": 10, "logprobs": True})])
    chat = [{"role": "user", "content": "Are parks good?"}]
    ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    generated = plain.generate(**ids, max_new_tokens=10, do_sample=False)[0, ids["input_ids"].shape[1] :]
    assert reply.content == tokenizer.decode(generated, skip_special_tokens=True)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (ids["input_ids"].shape[1], 10)
    first = torch.log_softmax(plain(**ids).logits[0, -1].detach().float(), -1)
    assert reply.logprobs[0].logprob == pytest.approx(float(first.max()), abs=1e-3)
    assert len(reply.logprobs[0].top_logprobs) >= 20


def test_tokens_are_sampled_with_their_probabilities() -> None:
    from parley.agents.models.seeded_sampler import gumbel_noise

    weights = torch.tensor([0.5, 0.3, 0.15, 0.05])
    seeds = torch.arange(20_000)
    sampled = (weights.log() + gumbel_noise(seeds, 3, 4)).argmax(-1)
    shares = torch.bincount(sampled, minlength=4) / len(seeds)
    # Four standard errors of a share are at most 4 · sqrt(0.25 / 20,000) = 0.014.
    assert torch.allclose(shares, weights, atol=0.014)
    noise = gumbel_noise(seeds, 0, 5)
    assert bool(torch.isfinite(noise).all())
    assert float(noise.mean()) == pytest.approx(0.5772, abs=0.02), "the mean of Gumbel noise is Euler's constant"
    assert float(noise.var()) == pytest.approx(math.pi**2 / 6, rel=0.03)


def test_the_noise_is_splitmix64s() -> None:
    """Published outputs for the seed 1234567 (Rosetta Code, "Pseudo-random numbers/Splitmix64")."""
    from parley.agents.models.seeded_sampler import GOLDEN, splitmix64

    counters = torch.tensor(1234567) + torch.arange(1, 6) * GOLDEN
    published = "6457827717110365317 3203168211198807973 9817491932198370423 4593380528125082431 16408922859458223821"
    assert " ".join(str(int(value) % 2**64) for value in splitmix64(counters)) == published


class Scores(BaseModel):
    Sixty: scale(0, 10)  # type: ignore[valid-type]
    Forty: scale(0, 10)  # type: ignore[valid-type]


def test_replies_are_constrained_to_a_schema(tiny: Path) -> None:
    async def judge() -> Any:
        client = model(f"hf/{tiny}", max_tokens=40)
        options = {"temperature": 1.0}
        return await asyncio.gather(
            *(structured_reply(client, prompt(f"Case {n}?"), Scores, options={**options, "seed": n}) for n in range(4)),
            structured_reply(client, prompt("And in words?"), Scores, options={**options, "seed": 9}),
        )

    answers = asyncio.run(judge())
    assert {answer.status for answer in answers} == {"ok"}, "a model with random weights could not write JSON by itself"


def test_errors_are_one_line(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"has no config\.json"):
        model(f"hf/{tmp_path / 'empty'}")
    with pytest.raises(ConfigError, match="there is no folder"):
        model(f"hf/{tmp_path / 'none'}")
    (tmp_path / "empty" / "config.json").write_text("{}")
    with pytest.raises(ParleyError, match="cannot be loaded"):
        replies(tmp_path / "empty", [(prompt("Hello?"), {})])
    with pytest.raises(ModelError, match=r"no answer within 0\.001 s"):
        replies(tiny, [(prompt("Hello?"), {"max_tokens": 200})], timeout=0.001, retries=0)
    with pytest.raises(ModelError, match="exceed the context window of 64"):
        replies(tiny, [(prompt("Hello? " * 40), {"max_tokens": 20})], context=64)


def test_self_debias_over_the_whole_vocabulary_is_the_embedded_models_arithmetic(tiny: Path) -> None:
    """One token, greedy: the most probable one of `debiased`; two of them go on from the same text."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from parley.agents.models.local import debiased

    tokenizer, plain = AutoTokenizer.from_pretrained(tiny), AutoModelForCausalLM.from_pretrained(tiny)
    calls, expected = [], []
    for decay in (0.0, 50.0, 5000.0):
        text, biased = (
            "My neighbour opened the window",
            "The window was rude: rude, rude. My neighbour opened the window",
        )
        options = {"contrast_decay": decay, "contrast_keep": 9, "max_tokens": 2, "temperature": 0.0}
        calls.append(([SystemMessage(content=biased), UserMessage(content=text, source="user")], options))
        ids = [tokenizer(words)["input_ids"] for words in (text, biased)]
        tokens: list[int] = []
        for _ in range(2):
            logits = [plain(torch.tensor([[*prompt_ids, *tokens]])).logits[0, -1] for prompt_ids in ids]
            first, second = (dict(enumerate(torch.softmax(row.detach().float(), -1).tolist())) for row in logits)
            weights = debiased(first, second, decay)
            tokens.append(max(weights, key=weights.__getitem__))
        expected.append(tokenizer.decode(tokens, skip_special_tokens=True))
    given = replies(tiny, calls)
    assert [reply.content for reply in given] == expected
    assert [reply.content for reply in replies(tiny, calls, max_connections=1)] == expected
    assert {reply.usage.completion_tokens for reply in given} == {4}, "for the text, and for the biased prompt"
    sampled = [(messages, {**options, "temperature": 1.0, "seed": 3}) for messages, options in calls]
    assert replies(tiny, sampled) != given


LABELS = ("a woman", "a man", "an atheist", "a person from far away")


def ballots(situations: Sequence[str]) -> list[list[LLMMessage]]:
    """One question about each situation and label, whose reply has been begun."""
    return [
        [*prompt(f"{situation} An answer by {label}. How good is it?"), AssistantMessage(content="I say ", source="me")]
        for situation in situations
        for label in LABELS
    ]


@pytest.mark.parametrize("max_connections", [1, 5, 64])
def test_one_token_is_read_with_the_probabilities_of_a_plain_forward_pass(tiny: Path, max_connections: int) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    situations = ["Are buses good? " * 9, "Are parks at home good? " * 14, "Games?"]
    calls = [(messages, {"max_tokens": 1, "logprobs": True, "temperature": 0.0}) for messages in ballots(situations)]
    read = replies(tiny, calls, max_connections=max_connections)
    tokenizer, plain = AutoTokenizer.from_pretrained(tiny), AutoModelForCausalLM.from_pretrained(tiny)
    for (messages, _), reply in zip(calls, read, strict=True):
        chat = [{"role": "user", "content": messages[0].content}, {"role": "assistant", "content": "I say "}]
        ids = tokenizer.apply_chat_template(chat, continue_final_message=True, return_tensors="pt", return_dict=True)
        logs = torch.log_softmax(plain(**ids).logits[0, -1].detach().float(), -1)
        top = logs.topk(20)
        (token,) = reply.logprobs
        assert token.logprob == pytest.approx(float(logs.max()), abs=1e-4)
        listed = [entry.logprob for entry in token.top_logprobs[:20]]
        assert listed == pytest.approx(top.values.tolist(), abs=1e-4), "and after these, single characters"
        texts = [tokenizer.decode([entry]) for entry in top.indices.tolist()]
        whole = [n for n, text in enumerate(texts) if "\ufffd" not in text]
        assert [bytes(token.top_logprobs[n].bytes).decode() for n in whole] == [texts[n] for n in whole]
        assert reply.content == tokenizer.decode([int(logs.argmax())], skip_special_tokens=True)
        assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (ids["input_ids"].shape[1], 1)


# Batched read-outs of the next token

VOCABULARY = 97


def prompts() -> list[list[int]]:
    """Three situations under labels of different lengths, one prompt twice, one that begins another, a short one."""
    rng = random.Random(1)
    texts = [[rng.randrange(VOCABULARY) for _ in range(length)] for length in (40, 5, 61)]
    labelled = [[*text, *range(label, label + label % 4 + 1), 3] for text in texts for label in range(10, 16)]
    rng.shuffle(labelled)
    return [*labelled, labelled[0], labelled[1][:7], [9]]


def alone(model: Any, prompt: list[int]) -> Any:
    return model(torch.tensor([prompt])).logits[0, -1].detach()


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
