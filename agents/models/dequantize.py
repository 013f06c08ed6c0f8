"""Quantised weights unpacked to 32-bit floats, once, beside the original.

llama.cpp's portable ARM build has no fast kernels for Q4_1: unpacked, SmolLM2 reads and writes 1.6 times faster
there (docs/decisions.md). The numbers are the same numbers; only their storage changes.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np


def expanded(path: Path) -> Path:
    """The unpacked twin of a GGUF file, written on first use; a half-written one is never taken for whole."""
    twin = path.with_suffix(".f32.gguf")
    if twin.is_file() and twin.stat().st_mtime >= path.stat().st_mtime:
        return twin
    part = twin.with_suffix(".part")
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(part, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.replace(twin)
    return twin
