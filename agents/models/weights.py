"""Weights in another format: the catalogue's GGUF files for transformers, or with other types of numbers for llama.cpp.

Both are converted once, into a folder or a file next to the original.
"""

from __future__ import annotations

import hashlib
import json
import platform
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

from parley.agents.models.catalogue import catalogue, fetch, remember_sha256, sha256_of
from parley.base.errors import ConfigError, ParleyError
from parley.base.files import new_file, new_folder, new_path
from parley.base.home import home, say

VERSION = 3
"""Increased when the conversion changes, so that older folders are converted again."""
MANIFEST = "unpacked.json"
"""Written last, so that an incomplete folder is never taken for a complete one."""


def base_folder(model: str) -> Path:
    """Path of a catalogue model in transformers' format, converted or not. It may be deleted at any time."""
    return home() / "bases" / model


def transformers_folder(model: str) -> Path:
    """The folder of a catalogue model in transformers' format; converted on first use."""
    folder = base_folder(model)
    if not _is_sound(folder, model):
        _keep(model, *_convert_for_transformers(model))
    return folder


def load_base(model: str, dtype: str, device: str) -> tuple[Any, Any]:
    """Load a catalogue model and its tokenizer, and cache the converted folder if possible.

    Args:
        model: The name in the catalogue.
        dtype: The type of the weights, by torch's name; auto: as kept.
        device: The device for the weights.
    """
    import torch

    if not _is_sound(base_folder(model), model):
        converted, tokenizer = _convert_for_transformers(model)
        try:
            _keep(model, converted, tokenizer)
        except ParleyError as error:
            say(f"{error}; {model} is still used, but the next run converts it again")
            return _cast(converted, torch.bfloat16 if dtype == "auto" else getattr(torch, dtype)).to(device), tokenizer
    return load_folder(base_folder(model), dtype, device)


def load_folder(source: Path | str, dtype: str, device: str) -> tuple[Any, Any]:
    """Load a transformers folder's model, and its tokenizer while the weights are copied to the device."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    _silence()
    with ThreadPoolExecutor(1) as pool:
        tokenizer = pool.submit(AutoTokenizer.from_pretrained, source)
        return AutoModelForCausalLM.from_pretrained(source, dtype=dtype).to(device), tokenizer.result()


def _convert_for_transformers(model: str) -> tuple[Any, Any]:
    """Convert the model, with the type of weights that is stored, and its tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM, modeling_gguf_pytorch_utils

    _silence()
    weights = fetch(model)
    tokenizer = read_tokenizer(weights)
    source: dict[str, Any] = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    bar = modeling_gguf_pytorch_utils.tqdm
    modeling_gguf_pytorch_utils.tqdm = lambda tensors, **_: tensors  # transformers' own switch leaves this bar on
    try:
        converted = AutoModelForCausalLM.from_pretrained(**source, **_dequantize_option(), dtype=torch.float32)
    finally:
        modeling_gguf_pytorch_utils.tqdm = bar
    return _cast(set_special_tokens(converted, tokenizer), torch.bfloat16), tokenizer


def _silence() -> None:
    """Suppress progress bars and warnings of transformers and the hub."""
    import transformers
    from huggingface_hub.utils import disable_progress_bars

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    disable_progress_bars()


def _cast(model: Any, dtype: Any) -> Any:
    """Convert the weights to another type, but not the tables of angles, as if loaded with that type."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)
    return model


def _keep(model: str, converted: Any, tokenizer: Any) -> None:
    """Write the model's folder; `ParleyError` if it cannot be written. A folder from another process is kept."""
    from safetensors import SafetensorError

    folder = base_folder(model)
    try:
        with new_folder(folder, lambda path: not _is_sound(path, model)) as part:
            try:
                converted.save_pretrained(part)
            except SafetensorError as error:
                raise OSError(str(error)) from None
            tokenizer.save_pretrained(part)
            manifest = _manifest(part, model)
            (part / MANIFEST).write_text(json.dumps(manifest), "utf-8")
    except ConfigError:
        if not _is_sound(folder, model):
            raise
    else:
        for name, digest in manifest["files"].items():
            remember_sha256(folder / name, digest)


def _manifest(folder: Path, model: str) -> dict[str, Any]:
    """The source of a converted folder, and the hashes of its weights."""
    files = {file.name: sha256_of(file) for file in sorted(folder.glob("*.safetensors"))}
    return {"version": VERSION, "sha256": catalogue()[model].sha256, "files": files}


def _is_sound(folder: Path, model: str) -> bool:
    """Whether the folder is complete, unchanged, and converted by this version from these weights."""
    try:
        return bool(json.loads((folder / MANIFEST).read_text("utf-8")) == _manifest(folder, model))
    except (OSError, ValueError):
        return False


def _dequantize_option() -> dict[str, Any]:
    """transformers 5.22 and later must be asked to dequantize; earlier versions always do."""
    try:
        from transformers import GgufConfig
    except ImportError:
        return {}
    return {"quantization_config": GgufConfig(dequantize=True)}


def set_special_tokens(model: Any, tokenizer: Any) -> Any:
    """Copy the tokenizer's padding and end tokens into the model's config."""
    for config in (model.config, model.generation_config):
        config.pad_token_id, config.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
    return model


SPLIT_DIGITS = ("smollm", "starcoder", "refact", "command-r")
"""llama.cpp's names of pre-tokenizers that split numbers into digits. Without the split, "40" would be a token that the
model has never seen."""
QWEN2_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Qwen2's pre-tokenizer, from its tokenizer.json."""
SPECIAL_TOKENS = {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"}
CONTROL = 3
"""GGUF's type of control tokens, which ordinary text cannot contain."""


def read_tokenizer(weights: Path) -> Any:
    """Read the file's byte-level BPE tokenizer, for transformers; `ConfigError` if it is of another kind.

    It is built from the file's own metadata: tokens, merges and special tokens. transformers can read a GGUF tokenizer
    too, but the result depends on its version: digits that are no longer split, an end token that begins a turn.
    """
    import gguf
    from tokenizers import Tokenizer, decoders
    from tokenizers.models import BPE
    from transformers import PreTrainedTokenizerFast

    fields = gguf.GGUFReader(weights).fields

    def metadata(key: str) -> Any:
        field = fields.get(f"tokenizer.{key}")
        return None if field is None else field.contents()

    if metadata("ggml.model") != "gpt2":
        raise ConfigError(
            f"{weights.name} cannot be converted: its tokenizer is not byte-level BPE; train from a folder"
        )
    tokens, merges = metadata("ggml.tokens"), [tuple(merge.split(" ")) for merge in metadata("ggml.merges")]
    backend = Tokenizer(BPE({token: token_id for token_id, token in enumerate(tokens)}, merges))
    backend.normalizer, backend.pre_tokenizer = _pre_tokenizer(str(metadata("ggml.pre")), weights)
    backend.decoder = decoders.ByteLevel()
    types = metadata("ggml.token_type")
    backend.add_special_tokens([token for token, type_ in zip(tokens, types, strict=True) if type_ == CONTROL])
    ids = {name: metadata(f"ggml.{key}_token_id") for name, key in SPECIAL_TOKENS.items()}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        **{name: tokens[token_id] for name, token_id in ids.items() if token_id is not None},
    )
    tokenizer.chat_template = metadata("chat_template")
    return tokenizer


def _pre_tokenizer(name: str, weights: Path) -> tuple[Any, Any]:
    """The normalizer and the pre-tokenizer, by llama.cpp's name for the latter."""
    from tokenizers import Regex, normalizers
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

    if name in SPLIT_DIGITS:
        return None, Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    if name == "gpt-2":
        return None, ByteLevel(add_prefix_space=False)
    if name == "qwen2":
        split = Split(Regex(QWEN2_PATTERN), "isolated")
        return normalizers.NFC(), Sequence([split, ByteLevel(add_prefix_space=False, use_regex=False)])
    raise ConfigError(f"{weights.name} cannot be converted: unknown pre-tokenizer '{name}'; train from a folder")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def template_sha256(folder: Path) -> str | None:
    """The SHA-256 of a transformers folder's chat template."""
    try:
        if (template_file := folder / "chat_template.jinja").is_file():
            return _sha256(template_file.read_text("utf-8"))
        template = json.loads((folder / "tokenizer_config.json").read_text("utf-8")).get("chat_template")
        return _sha256(template) if isinstance(template, str) else None
    except (OSError, ValueError, AttributeError):
        return None


NumberType = Literal["f32", "f16"]
"""Number types of stored weights: 32 and 16 bits."""


def fastest_type() -> NumberType:
    """The type with which llama.cpp's portable builds read SmolLM2 fastest on this machine (benchmarks/ballots.py)."""
    return "f32" if platform.machine().lower() in ("aarch64", "arm64") else "f16"


def copy_path(path: Path, number_type: NumberType) -> Path:
    """Path for the copy of a GGUF file with another number type."""
    return path.with_suffix(f".{number_type}.gguf")


def converted(path: Path, number_type: NumberType) -> Path:
    """Copy a GGUF file with its weights as another type, on first use; renamed into place when it is complete.

    llama.cpp's portable builds have no fast kernels for SmolLM2's Q4_1. The weights are not quantized to fewer bits, so
    they hardly change: with 32 bits not at all, with 16 by less than a thousandth.

    Both hashes are stored next to it: a copy of other weights, or a changed one, is written again.
    """
    copy = copy_path(path, number_type)
    hashes = copy.with_name(f"{copy.name}.json")
    original = sha256_of(path)
    try:
        if json.loads(hashes.read_text("utf-8")) == {"from": original, "sha256": sha256_of(copy)}:
            return copy
    except (OSError, ValueError):
        pass  # there is none yet
    with new_path(copy, Path.is_file) as part:
        _convert(path, part, number_type)
    with new_file(hashes, Path.is_file) as file:
        json.dump({"from": original, "sha256": sha256_of(copy)}, file)
    return copy


def _convert(path: Path, copy: Path, number_type: NumberType) -> None:
    import gguf
    import numpy as np

    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(copy, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        element = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=element)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if tensor.tensor_type == gguf.GGMLQuantizationType.F32 or number_type == "f32":
            writer.add_tensor(tensor.name, values)  # norms have 32 bits in every file
        else:
            writer.add_tensor(tensor.name, values.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
