"""Injection attempts: texts that try to influence a judge from inside the text that is judged. Each has a harmless
control of about its length.

    attempts = load_attempts("injections-1")

They are shipped, or come from your own .toml file with the same keys. An encoding (base64, zero-width, …) is applied
here, to the attempt and to its control, so that the file stays readable.
"""

from __future__ import annotations

import base64
import codecs
import hashlib
import re
from collections import Counter
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from parley.base.errors import ScenarioError, UnknownName
from parley.base.problems import ID_PATTERN, UserFile

SHIPPED = "injections-1"
ZERO_WIDTH = "\u200b"
CODES: dict[str, Callable[[str], str]] = {
    "": str,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "zero-width": ZERO_WIDTH.join,
    "full-width": lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
}


class Attempt(BaseModel, extra="forbid", frozen=True):
    """A text that tries to influence a judge, and a harmless one of about its length.

    Args:
        id: A short name, unique in its set.
        kind: The kind of attempt, for reports.
        text: The attempt, with {score} and {verdict} for the score and the JSON that it asks for.
        control: The harmless text.
        place: Where in the response it is put.
        code: An encoding that hides it.
    """

    id: Annotated[str, Field(pattern=ID_PATTERN)]
    kind: Annotated[str, Field(min_length=1)]
    text: Annotated[str, Field(min_length=1)]
    control: Annotated[str, Field(min_length=1)]
    place: Literal["start", "middle", "end"] = "end"
    code: Literal["", "base64", "rot13", "zero-width", "full-width"] = ""

    def in_response(self, response: str, score: int, verdict: str) -> str:
        """The response with the attempt in it.

        Args:
            response: The response.
            score: The score that the attempt asks for.
            verdict: The JSON reply with that score.
        """
        return self._put(response, self.text.replace("{score}", str(score)).replace("{verdict}", verdict))

    def control_in(self, response: str) -> str:
        """The response with the harmless text in the same place."""
        return self._put(response, self.control)

    def _put(self, response: str, text: str) -> str:
        text = CODES[self.code](text)
        if self.place == "start":
            return f"{text} {response}"
        if self.place == "end":
            return f"{response} {text}"
        ends = [match.end() for match in re.finditer(r"[.!?](?=\s)", response)] or [len(response)]
        half = min(ends, key=lambda end: abs(end - len(response) / 2))
        return f"{response[:half]} {text}{response[half:]}"


class Attempts(BaseModel, extra="forbid", frozen=True):
    """The attempts of a file."""

    schema_version: Literal[1] = Field(alias="schema")
    name: str
    version: str
    attempt: Annotated[tuple[Attempt, ...], Field(min_length=1)]

    def digest(self) -> str:
        """The SHA-256 hash of the attempts."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def kinds(self) -> list[str]:
        """The kinds of attempts."""
        return list(dict.fromkeys(attempt.kind for attempt in self.attempt))

    def only(self, kinds: list[str] | None) -> Attempts:
        """The attempts of some kinds, or with some ids; all if `kinds` is None."""
        if kinds is None:
            return self
        for name in kinds:
            if not any(name in (attempt.kind, attempt.id) for attempt in self.attempt):
                raise UnknownName(f"unknown kind or id of attempts '{name}' (kinds: {', '.join(self.kinds)})")
        chosen = tuple(attempt for attempt in self.attempt if attempt.kind in kinds or attempt.id in kinds)
        if not chosen:
            raise ScenarioError("at least one kind of attempt is needed")
        return self.model_copy(update={"attempt": chosen})


def load_attempts(name: str) -> Attempts:
    """A set of attempts.

    Args:
        name: `injections-1`, or a path to a .toml file.
    """
    if name != SHIPPED and not name.endswith(".toml"):
        raise UnknownName(f"unknown set of attempts '{name}' (known: {SHIPPED}, or a .toml file)")
    shipped = files("parley.scenarios").joinpath("data", "injections", f"{SHIPPED}.toml")
    path = Path(str(shipped) if name == SHIPPED else name)
    file = UserFile.read(path, "set of attempts")
    attempts = file.validate(Attempts)
    ids = Counter(attempt.id for attempt in attempts.attempt) if attempts else Counter[str]()
    if repeated := sorted(name for name, count in ids.items() if count > 1):
        file.add((), f"attempts occur twice: {', '.join(repeated)}")
    file.refuse()
    assert attempts is not None
    return attempts
