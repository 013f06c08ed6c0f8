"""Files of JSON lines from the Hugging Face hub."""

from __future__ import annotations

from typing import Any

from parley.base.errors import ScenarioError, install


def load_lines(file: str, *, data: str, instead: str, cache: str | None = None) -> Any:
    """Load the rows of a file.

    Args:
        file: Its path or URL.
        data: The dataset's name, for messages.
        instead: The alternative for --data without a network.
        cache: The folder to cache it in (default: that of `datasets`).
    """
    try:
        from datasets import load_dataset
    except ModuleNotFoundError:
        raise ScenarioError(
            f"{data} from the hub needs the package datasets: {install('datasets')}, or give {instead} with --data"
        ) from None
    try:
        return load_dataset("json", data_files=file, split="train", cache_dir=cache)
    except Exception as error:  # the network, the hub and Arrow raise many kinds of errors
        why = " ".join(str(error).split())[:160] or type(error).__name__
        raise ScenarioError(f"{file} cannot be downloaded ({why}); offline, give {instead} with --data") from None
