"""The vendors' keys, and no other variables of theirs."""

from __future__ import annotations

import pytest

from tests.vendors.asking import STANDINS
from tests.vendors.base import KEY

OTHERS = (
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "GOOGLE_API_KEY",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "GOOGLE_GEMINI_BASE_URL",
)


@pytest.fixture(autouse=True)
def _keys(monkeypatch):
    for name in OTHERS:
        monkeypatch.delenv(name, raising=False)
    for standin in STANDINS.values():
        monkeypatch.delenv(f"{standin.provider.upper()}_BASE_URL", raising=False)
        if standin.key_variable:
            monkeypatch.setenv(standin.key_variable, KEY)
