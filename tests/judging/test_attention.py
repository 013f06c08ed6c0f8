"""Attention on the framing's words, on a model so small and plain that the answer is known."""

from __future__ import annotations

import json

import pytest

import parley
from parley.base.errors import ConfigError
from parley.cli import main
from parley.judging.attention import study
from parley.judging.attention.weights import AttentionWeights, PhraseAttention
from parley.runs import frames

TEMPLATE = "{% for m in messages %}[ {{ m['content'] }} ] {% endfor %}reply :"


@pytest.fixture(scope="module")
def even(tmp_path_factory):
    """A Llama of two layers that looks at everything alike: its queries are zero, so every score is the same."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
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


class Halves:
    """Weights that give half of the attention to any phrase, and note what they were asked about."""

    def __init__(self):
        self.asked = []

    def attention_to(self, chat, phrase):
        self.asked.append((chat, phrase))
        return PhraseAttention(tokens=9, phrase_tokens=3, share=0.5, even=0.3, by_layer=(0.5,), by_token=(("Q", 0.5),))


def test_its_units_are_the_prompts_that_a_framing_run_sent(place, monkeypatch):
    parley.run("framing", topics=2, model="sim/x", out="f.sqlite")
    parley.run("topics", count=1, model="sim/x", out="t.sqlite")
    halves = Halves()
    monkeypatch.setattr(study, "require_weights", lambda path: None)
    monkeypatch.setattr(AttentionWeights, "load", lambda path: halves)
    with pytest.raises(ConfigError, match="is a run of 'topics'; attention needs a run of 'framing'"):
        parley.run("attention", framing="t.sqlite", weights="any.gguf")
    assert parley.run("attention", framing="f.sqlite", weights="any.gguf", limit=1, out="a.sqlite").complete
    verdicts = frames.verdicts("a.sqlite")
    assert list(verdicts.loc[verdicts["metric"] == "share", "framing"]) == ["ours", "model", "rival"]
    for chat, phrase in halves.asked:
        assert [message["role"] for message in chat] == ["system", "user"]
        assert chat[-1]["content"].startswith(phrase)
    assert [phrase.split()[-1] for _, phrase in halves.asked] == ["Q&A.", "model.", "you."]
