"""Prompts as text files, and the user's in their place (`parley run --prompts-from FOLDER`).

ASK = Prompt.load("framing/ask")               # judging/framing/prompts/ask.txt
ASK(trait="age")                               # filled in
ASK.reads(Reply)                               # the reply's type, or what the user's reader makes of it
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import BaseModel

from parley.agents import ConfigError
from parley.judging.readers import read_by

M = TypeVar("M", bound=BaseModel)


class UsersPrompt(NamedTuple):
    """A user's prompt, in place of a shipped one (`--prompts-from`).

    Args:
        text: The text.
        reader: The reader of its replies (`readers.py`); "" if they have the shipped prompt's format.
    """

    text: str
    reader: str = ""


USERS_PROMPTS: ContextVar[Mapping[str, UsersPrompt]] = ContextVar("USERS_PROMPTS", default={})  # noqa: B039
"""The user's prompts in the current run, by name. Shipped prompts are constants of many modules, so this is set before
making a study or running units."""


def text_of(name: str, ours: str) -> str:
    """The text of a prompt or persona: the user's, or else the shipped one."""
    prompts = USERS_PROMPTS.get()
    return prompts[name].text if name in prompts else ours


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with named {placeholders}: a text file in the `prompts/` of a study's folder, or next to your own study.

    Args:
        name: The name under which runs store it and users replace it.
        ours: The shipped text; call the prompt with values for its placeholders.
    """

    name: str
    ours: str = field(repr=False)

    @property
    def text(self) -> str:
        """The user's text, or else the shipped one."""
        return text_of(self.name, self.ours)

    def reads(self, reply_type: type[M]) -> type[M]:
        """The type of replies: the study's, unless the user's prompt names a reader."""
        prompt = USERS_PROMPTS.get().get(self.name)
        return read_by(prompt.reader, reply_type) if prompt and prompt.reader else reply_type

    @classmethod
    def load(cls, name: str, folder: str = "") -> Prompt:
        """Load a shipped prompt: `Prompt.load("bbq/cot")` reads `judging/bbq/prompts/cot.txt`.

        Args:
            name: The folder in `judging/`, and the path in its `prompts/`, without `.txt`.
            folder: The folder in `judging/`, if the name does not begin with it.
        """
        first, *rest = f"{name}.txt".split("/")
        place = (folder, "prompts", first, *rest) if folder else (first, "prompts", *rest)
        path = files("parley.judging").joinpath(*place)
        return cls(name, path.read_text("utf-8").strip())

    @classmethod
    def beside(cls, module: str, name: str) -> Prompt:
        """Load a text file in the folder of your own module: `Prompt.beside(__file__, "ask")` reads `ask.txt`.

        Args:
            module: The module's `__file__`.
            name: The file's name, without `.txt`.
        """
        path = Path(module).with_name(f"{name}.txt")
        try:
            return cls(name, path.read_text("utf-8").strip())
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None

    def __call__(self, **values: object) -> str:
        return self.text.format(**values)
