"""A model's reply."""

from __future__ import annotations

from autogen_core.models import CreateResult


class Reply(CreateResult):
    """AutoGen's result, and what the provider alone knows."""

    refused: bool = False
    cached_tokens: int | None = None
    """Prompt tokens that the server had read before and did not read again; None where it does not say."""
    written_tokens: int = 0
    """Prompt tokens that were put into a vendor's prompt cache, which some charge for."""
