"""Attention on the framing's words, on a model so small and plain that the answer is known."""

from __future__ import annotations

import json

import pytest

from parley.cli import main
from parley.judging.attention.weights import AttentionWeights

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEMPLATE = "{% for m in messages %}[ {{ m['content'] }} ] {% endfor %}reply :"


@pytest.fixture(scope="module")
def even(tmp_path_factory):
    """A Llama of two layers that looks at everything alike: its queries are zero, so every score is the same."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("even")
    plain = Tokenizer(models.WordLevel({"?": 0, "our": 1, "Q": 2}, unk_token="?"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="?", chat_template=TEMPLATE)
    tokenizer.save_pretrained(folder)
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=3, **shape))
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.q_proj.weight.zero_()
    model.save_pretrained(folder)
    return folder


def test_uniform_attention_gives_a_phrase_its_share_of_tokens(even):
    chat = [{"role": "user", "content": "here is our Q\nand more of it"}]
    actual = AttentionWeights.load(even).attention_to(chat, "here is our Q")
    # [ here is our Q and more of it ] reply : are 12 tokens, 11 without the first; the phrase is 4 of them.
    assert (actual.tokens, actual.phrase_tokens) == (12, 4)
    assert actual.even == pytest.approx(4 / 11)
    assert actual.share == pytest.approx(4 / 11)
    assert actual.by_layer == pytest.approx((4 / 11, 4 / 11))
    assert [token for token, _ in actual.by_token] == ["here", "is", "our", "Q"]
    assert [weight for _, weight in actual.by_token] == pytest.approx([1 / 11] * 4)


def test_attention_is_measured_on_the_prompts_of_a_framing_run(even, place, capsys):
    assert main(["run", "framing", "--topics", "3", "--model", "sim/x", "--quiet", "--out", "f.sqlite"]) == 0
    capsys.readouterr()
    run = ["run", "attention", "--from", "f.sqlite", "--weights", str(even), "--limit", "2", "--out", "a.sqlite"]
    assert main([*run, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["report", "a.sqlite", "--json"]) == 0
    rows = {row["framing"]: row for row in json.loads(capsys.readouterr().out)["attention"]}
    assert set(rows) == {"ours", "model", "rival"}
    assert {row["answers"] for row in rows.values()} == {2}
    assert rows["ours"]["tokens"] < rows["model"]["tokens"] < rows["rival"]["tokens"], "each is longer than the last"
    assert [row["ratio"] for row in rows.values()] == pytest.approx([1, 1, 1])
