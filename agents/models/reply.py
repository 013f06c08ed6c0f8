"""A model's reply."""

from __future__ import annotations

from autogen_core.models import CreateResult


class Reply(CreateResult):
    """AutoGen's result, and what the provider alone knows."""

    refused: bool = False
