"""The vendors' keys, and no other variables of theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.vendors.base import KEY, standins

OTHERS = (
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "GOOGLE_API_KEY",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "GOOGLE_GEMINI_BASE_URL",
)


@contextmanager
def vendors_keys(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every vendor's key is set, and no address."""
    for name in OTHERS:
        patch.delenv(name, raising=False)
    for standin in standins().values():
        patch.delenv(f"{standin.provider.upper()}_BASE_URL", raising=False)
        if standin.key_variable:
            patch.setenv(standin.key_variable, KEY)
    yield


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with vendors_keys(monkeypatch):
        yield
