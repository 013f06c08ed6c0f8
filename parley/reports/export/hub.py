"""Uploads a dataset to the Hugging Face hub: Parquet files and card, in one commit. The token is HF_TOKEN."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from parley.agents import ConfigError, ParleyError
from parley.reports.export.dataset import Dataset
from parley.reports.export.write import MISSING, write_dataset


def push(dataset: Dataset, name: str, *, public: bool) -> str:
    """Uploads the dataset, and gives its address on the hub.

    Args:
        dataset: The dataset.
        name: owner/name.
        public: Whether everyone can see it.
    """
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ModuleNotFoundError:
        raise ConfigError(MISSING) from None
    token = os.environ.get("HF_TOKEN")
    if not token:
        raise ConfigError("the hub needs a token: set HF_TOKEN")
    if name.count("/") != 1:
        raise ConfigError(f"name the dataset as owner/name with --to, not '{name}'")
    hub = HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=token)
    with tempfile.TemporaryDirectory() as folder:
        path = write_dataset(dataset, Path(folder) / "dataset")
        try:
            hub.create_repo(name, repo_type="dataset", private=not public, exist_ok=True)
            hub.upload_folder(repo_id=name, folder_path=path, repo_type="dataset", commit_message="Debates by Parley")
        except (HfHubHTTPError, HFValidationError, OSError) as error:
            why = " ".join(str(error).replace(token, "***").split())[:200]
            raise ParleyError(f"the hub refused {name}: {why}") from None
    return f"{hub.endpoint}/datasets/{name}"
