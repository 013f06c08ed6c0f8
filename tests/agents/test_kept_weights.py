"""`hf/NAME`: the catalogue's GGUF is converted once, and what is kept gives the same numbers as a fresh conversion."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

WHY = "models on transformers are tested where the extra hf is installed"
torch = pytest.importorskip("torch", reason=WHY)
pytest.importorskip("transformers", reason=WHY)
gguf = pytest.importorskip("gguf", reason=WHY)
pytest.importorskip("llguidance", reason=WHY)

from parley.agents import ParleyError  # noqa: E402
from parley.agents.models import weights  # noqa: E402
from parley.agents.models.catalogue import CatalogueEntry, weights_path  # noqa: E402
from parley.agents.models.hf import BYTES, HfClient  # noqa: E402

NAME = "tiny"
WIDTH, INNER, LAYERS, HEADS = 32, 64, 2, 4
CONTROLS = ("<|im_start|>", "<|im_end|>")
TEMPLATE = "{% for message in messages %}<|im_start|>{{ message['content'] }}<|im_end|>{% endfor %}"


def write_gguf(path: Path, seed: int) -> None:
    """A Llama of two layers with random weights, whose tokens are bytes."""
    rng = torch.Generator().manual_seed(seed)
    tokens = [*sorted(BYTES), "ab", *CONTROLS]
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in {
        "block_count": LAYERS,
        "context_length": 256,
        "embedding_length": WIDTH,
        "feed_forward_length": INNER,
        "head_count": HEADS,
        "head_count_kv": HEADS,
    }.items():
        getattr(writer, f"add_{key}")(value)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_merges(["a b"])
    writer.add_token_types([gguf.TokenType.NORMAL] * (len(BYTES) + 1) + [gguf.TokenType.CONTROL] * len(CONTROLS))
    writer.add_eos_token_id(len(tokens) - 1)
    writer.add_pad_token_id(len(tokens) - 1)
    writer.add_chat_template(TEMPLATE)
    shapes = {"token_embd": (len(tokens), WIDTH), "output": (len(tokens), WIDTH), "output_norm": (WIDTH,)}
    for layer in range(LAYERS):
        names = {f"attn_{part}": (WIDTH, WIDTH) for part in ("q", "k", "v", "output")}
        names |= {"ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)}
        names |= {"attn_norm": (WIDTH,), "ffn_norm": (WIDTH,)}
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in names.items()}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", torch.randn(shape, generator=rng).numpy())
    for part in ("header", "kv_data", "tensors"):
        getattr(writer, f"write_{part}_to_file")()
    writer.close()


@pytest.fixture
def publish(tmp_path, monkeypatch):
    """Puts a GGUF file into an empty home's catalogue; another one replaces it."""
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))

    def publish(seed: int) -> None:
        path = weights_path(NAME)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        write_gguf(path, seed)
        content = path.read_bytes()
        entry = CatalogueEntry(about="", licence="", size=len(content), sha256=sha256(content).hexdigest())
        for module in ("catalogue", "weights", "hf"):
            monkeypatch.setattr(f"parley.agents.models.{module}.catalogue", lambda: {NAME: entry})

    publish(seed=1)
    return publish


@pytest.fixture
def conversions(monkeypatch):
    """One entry per conversion."""
    made: list[str] = []
    convert = weights._convert_for_transformers

    def counted(model: str) -> Any:
        made.append(model)
        return convert(model)

    monkeypatch.setattr(weights, "_convert_for_transformers", counted)
    return made


def logits(loaded: tuple[Any, Any]) -> Any:
    model, tokenizer = loaded
    ids = tokenizer("Are buses good, 42?<|im_end|>", return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        return model(ids).logits


def load() -> Any:
    return logits(weights.load_base(NAME, "float32", "cpu"))


def test_what_is_kept_gives_the_logits_of_a_fresh_conversion(publish, conversions, capfd):
    model, tokenizer = weights._convert_for_transformers(NAME)
    fresh = logits((weights._cast(model, torch.float32), tokenizer))
    assert torch.equal(load(), fresh)
    assert conversions == [NAME] * 2
    assert torch.equal(load(), fresh)
    assert conversions == [NAME] * 2, "the second time, what is kept is used"
    assert capfd.readouterr() == ("", ""), "no progress bar"


def test_a_changed_file_is_converted_again(publish, conversions):
    first = load()
    publish(seed=2)
    assert not torch.equal(load(), first)
    assert len(conversions) == 2


@pytest.mark.parametrize("damage", ["cut", "changed", "without its manifest"])
def test_a_torn_copy_is_not_used(publish, conversions, damage):
    first = load()
    folder = weights.base_folder(NAME)
    part = folder / "model.safetensors"
    content = part.read_bytes()
    if damage == "without its manifest":
        (folder / weights.MANIFEST).unlink()
    else:
        part.write_bytes(content[:-100] if damage == "cut" else content[:-1] + bytes([content[-1] ^ 1]))
    assert torch.equal(load(), first)
    assert len(conversions) == 2
    assert part.read_bytes() == content
    assert [path.name for path in folder.parent.iterdir()] == [NAME], "nothing else is left behind"


def test_of_two_first_runs_one_keeps_its_copy(publish, monkeypatch, capfd):
    convert = weights._convert_for_transformers
    written: list[int] = []

    def overtaken(model: str) -> Any:
        converted = convert(model)
        if not written:
            written.append(0)
            folder = weights.transformers_folder(model)  # by another process
            written[0] = (folder / "model.safetensors").stat().st_ino
        return converted

    monkeypatch.setattr(weights, "_convert_for_transformers", overtaken)
    assert torch.equal(load(), load())
    assert (weights.base_folder(NAME) / "model.safetensors").stat().st_ino == written[0]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("cause", ["read-only", "full"])
def test_where_nothing_can_be_kept_the_run_goes_on(publish, conversions, monkeypatch, capfd, cause):
    kept = load()
    shutil.rmtree(weights.base_folder(NAME).parent)
    if cause == "read-only":
        weights.base_folder(NAME).parent.write_bytes(b"")  # no folder can be made here, not even by root
    else:
        from safetensors import SafetensorError

        def fail(*_: Any, **__: Any) -> None:
            raise SafetensorError("No space left on device (os error 28)")

        monkeypatch.setattr("transformers.PreTrainedModel.save_pretrained", fail)
    assert torch.equal(load(), kept)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "cannot be written" in lines[0]
    assert "converted again" in lines[0]
    with pytest.raises(ParleyError, match="cannot be written"):
        weights.transformers_folder(NAME)  # training needs the folder
    assert len(conversions) == 3


def test_the_bytes_of_tokens_are_llguidances(publish):
    client = HfClient(f"hf/{NAME}")
    client._load()
    count = len(client._tokenizer)
    mine = [client._text(token).bytes for token in range(count)]
    assert "_grammars" not in vars(client), "no grammar is made for that"
    tokens = client._grammars.tokens
    missed = [token for token in range(count) if mine[token] != list(tokens.decode_bytes([token]))]
    assert [mine[token] for token in missed] in ([], [[255]]), "llguidance marks special tokens with the byte 255"
