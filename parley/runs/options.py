"""Options of `parley run` that are not the study's, and error messages for wrong values."""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from parley.base.errors import ConfigError, several
from parley.base.problems import near_key
from parley.judging import Advanced

M = TypeVar("M", bound=BaseModel)
_UNITS = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_CLOCK = re.compile(r"(\d+):(\d\d):(\d\d)")
_DAYS = re.compile(r"(\d+)-(\d+)(?::(\d\d))?(?::(\d\d))?")


def to_seconds(text: str) -> int:
    """Parse a length of time into seconds; `ValueError` if it is invalid or 0.

    A number without a unit is refused: SLURM reads it as minutes, and most programs as seconds.
    """
    text = text.strip().lower()
    if match := _CLOCK.fullmatch(text):
        parts = ("0", *match.groups())
    elif match := _DAYS.fullmatch(text) or _UNITS.fullmatch(text):
        parts = tuple(part or "0" for part in match.groups())
    else:
        raise ValueError(text)
    days, hours, minutes, seconds = map(int, parts)
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if not total:
        raise ValueError(text)
    return total


class Options(BaseModel, extra="forbid", frozen=True):
    """Options of how a run is executed. Only prompts change its results; all others may differ when a run is resumed.

    The descriptions of the fields are the help texts of the flags of `parley run`.
    """

    out: str | None = Field(
        None, description="the run file (default: runs/<study>-<model>-<hash of the config>.sqlite)"
    )
    prompts_from: Advanced[str | None] = Field(
        None, title="FOLDER", description="folder of text files that replace prompts (--prompts-to writes ours)"
    )
    concurrency: int | None = Field(None, ge=1, description="units run concurrently (default: the model's limit)")
    cache: bool = Field(True, description="keep model replies for later runs; otherwise only until this run is done")
    executor: Literal["asyncio", "ray"] = Field(
        "asyncio",
        description="what runs the units: this process, or Ray on several cores or machines",
    )
    workers: Advanced[int | None] = Field(None, ge=1, description="Ray's workers (default: one per free core)")
    ray_address: Advanced[str | None] = Field(
        None, description="address of a Ray cluster (default: Ray on this machine)"
    )
    budget_calls: int | None = Field(None, ge=0, description="stop after this many model calls in total")
    budget_tokens: Advanced[int | None] = Field(None, ge=0, description="stop after this many tokens in total")
    budget_cost: float | None = Field(None, ge=0, description="stop after this many US dollars in total")
    grace: Advanced[float] = Field(
        60.0, gt=0, description="seconds that a run may take to end after SIGTERM, SIGUSR1, SIGUSR2 or SIGHUP"
    )
    wall_time: Advanced[str | None] = Field(
        None, description="stop before this much time has passed: 90m, 2h30m, 02:00:00 or 1-12:00:00"
    )

    @field_validator("wall_time")
    @classmethod
    def _is_a_time(cls, text: str | None, info: ValidationInfo) -> str | None:
        if text is None:
            return None
        try:
            seconds = to_seconds(text)
        except ValueError:
            raise PydanticCustomError("time", "write it as 90m, 2h30m, 02:00:00 or 1-12:00:00") from None
        if seconds <= info.data.get("grace", 0.0):
            raise PydanticCustomError("time", "it must be longer than the grace of {grace} s", info.data)
        return text


_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = 80


def validated(schema: type[M], values: Mapping[str, Any]) -> M:
    """Validate values as a model; `ConfigError` names a wrong key or value.

    Args:
        schema: The model.
        values: Its fields, as typed or as in a config file.
    """
    try:
        return schema.model_validate(dict(values))
    except ValidationError as error:
        raise several(ConfigError, (_explained(each, schema) for each in error.errors())) from None


def explain(
    error: ValidationError, schema: type[BaseModel], name: Callable[[str, FieldInfo], str] = lambda key, info: key
) -> str:
    """Pydantic's first error as one line.

    Args:
        error: Pydantic's error.
        schema: The model.
        name: A function from a field to its name in the message.
    """
    return _explained(error.errors()[0], schema, name)


def _explained(
    first: ErrorDetails, schema: type[BaseModel], name: Callable[[str, FieldInfo], str] = lambda key, info: key
) -> str:
    key = ".".join(str(part) for part in first["loc"] if not isinstance(part, int))  # not which of a list's members
    if first["type"] == "extra_forbidden":
        return f"unknown key '{key}'{near_key(key, list(schema.model_fields))}"
    info = next((info for field, info in schema.model_fields.items() if key in (field, info.alias)), None)
    called = name(key, info) if info else key
    if first["type"] == "missing" and info:
        return f"{called} is missing: {info.description or 'it has no default'}"
    given, message = _BRIEF.repr(first["input"]), first["msg"]
    if not called:
        return message.removeprefix("Value error, ")
    if message.startswith("Input should be "):
        wanted = message.removeprefix("Input should be ").partition(", unable to")[0]
        for long, short in _SHORTER.items():
            wanted = wanted.replace(long, short)
        similar = difflib.get_close_matches(str(first["input"])[:80], re.findall(r"'([^']+)'", wanted), n=1)
        return f"{called} must be {wanted}, got {given}" + (f" (did you mean {similar[0]}?)" if similar else "")
    return f"{called}: {message}, not {given}"


_SHORTER = {
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "greater than": "above",
    "less than": "below",
    "a valid integer": "a whole number",
    "a valid number": "a number",
}
"""Replacements for pydantic's words."""
