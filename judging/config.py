"""What the configs of studies share: fields that take one name or several, and the options of model calls."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

as_list = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
"""For a list whose single member may be written without the list."""
NameList = Annotated[list[str], as_list]
"""A list of names; a single name may be written without the list."""

NO_MEASURE = "none"
"""As `--measure`: nothing but the loop's own scorers and judges measures the result."""


def limit_field(what: str) -> Any:
    """The field `limit`: a run on part of the data.

    Args:
        what: What it limits, for the help.
    """
    return Field(None, ge=1, description=f"{what} (default: all)")


def call_options(max_tokens: int, temperature: float | None) -> dict[str, Any]:
    """The options of every model call; without a temperature, the model's default applies.

    Args:
        max_tokens: Maximum length of one reply.
        temperature: The sampling temperature, or None.
    """
    options: dict[str, Any] = {"max_tokens": max_tokens}
    return options if temperature is None else {**options, "temperature": temperature}
