"""Quantized weights dequantized to 32-bit floats, once, into a file beside the original.

llama.cpp's portable ARM build has no fast kernels for Q4_1: dequantized, SmolLM2 is 1.6 times faster there
(docs/decisions.md). The values of the weights do not change, only how they are stored.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import gguf
import numpy as np

from parley.agents.models.catalogue import sha256_of


def dequantized(path: Path) -> Path:
    """The dequantized copy of a GGUF file, written on first use and renamed into place when it is complete.

    The hashes of both stand beside it: a copy of other weights, or one that was changed, is written again.
    """
    copy = path.with_suffix(".f32.gguf")
    hashes = copy.with_name(f"{copy.name}.json")
    original = sha256_of(path)
    try:
        if json.loads(hashes.read_text("utf-8")) == {"from": original, "sha256": sha256_of(copy)}:
            return copy
    except (OSError, ValueError):
        pass  # there is none yet
    part = copy.with_suffix(f".{os.getpid()}.part")
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(part, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        element = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=element)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.replace(copy)
    hashes.write_text(json.dumps({"from": original, "sha256": sha256_of(copy)}), "utf-8")
    return copy
