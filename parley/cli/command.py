"""A command is a class: its fields are its flags, its docstring is its help, and `answer` does the work.

    class Fetch(Command):
        '''Download an embedded model.'''

        name: Positional[str] = Field(description="the model to download")
        tries: int = Field(3, ge=1, description="how often to try")

        def answer(self) -> Answer:
            return Answer({"model": self.name}, [f"{self.name} is downloaded"])

A wrong value gives a one-line error that names the flag. With --json the answer's data are printed, otherwise its
lines.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from parley.base.errors import ConfigError
from parley.base.text import visible, visible_in_json
from parley.cli.flags import add_flags, flag_of, given
from parley.cli.shared import AddParser
from parley.runs.options import explain, validated


class Terminal(Console):
    """A console that escapes control characters other than its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Answer:
    """A command's result.

    Args:
        data: The data for --json.
        lines: Output for a terminal: lines, or rich's tables and texts; made only if printed.
        status: The exit status.
    """

    data: Any = None
    lines: Iterable[Any] = ()
    status: int = 0


class Command(BaseModel, extra="forbid", frozen=True, validate_by_name=True, allow_inf_nan=False):
    """Base class of commands."""

    epilog: ClassVar[str | None] = None
    usage: ClassVar[str | None] = None
    needs: ClassVar[Mapping[str, str]] = {}
    """Fields that require another one: {"where": "export"}."""
    alone: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Fields with the fields that they make ineffective."""
    no_flag: ClassVar[Sequence[str]] = ()

    as_json: bool = Field(False, alias="json", description="print JSON")

    @abstractmethod
    def answer(self) -> Answer:
        """Do the command's work."""

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        """Refuse a flag that would have no effect."""
        typed = self.model_fields_set
        for name, other in self.needs.items():
            if name in typed and other not in typed:
                raise ValueError(f"{self.flag(name)} needs {self.flag(other)}")
        for name, others in self.alone.items():
            if name in typed and (idle := [other for other in others if other in typed]):
                raise ValueError(f"leave out {self.flag(idle[0])}: it has no effect with {self.flag(name)}")
        return self

    def part(self, schema: type[M]) -> M:
        """The typed fields that another model also has, as that model."""
        return validated(schema, self.model_dump(include=self.model_fields_set & schema.model_fields.keys()))

    @classmethod
    def flag(cls, name: str) -> str:
        """A field as typed: --dry-run, RUN."""
        return flag_of(name, cls.model_fields[name])

    @classmethod
    def add_to(cls, add_parser: AddParser, words: Sequence[str] = ()) -> argparse.ArgumentParser:
        """Add the command's parser.

        Args:
            add_parser: Makes it.
            words: The words after the command's name.
        """
        about = textwrap.fill(" ".join((cls.__doc__ or "").split()), 80)
        parser = add_parser(epilog=cls.epilog, usage=cls.usage, description=about)
        add_flags(parser, cls, leave_out=cls.no_flag)
        parser.set_defaults(handler=cls.handle)
        return parser

    @classmethod
    def read(cls, parsed: argparse.Namespace) -> Self:
        """Make the command from typed flags; `ConfigError` names a wrong flag or value."""
        try:
            return cls.model_validate(given(parsed, cls))
        except ValidationError as error:
            raise ConfigError(explain(error, cls, flag_of)) from None

    @classmethod
    def handle(cls, parsed: argparse.Namespace) -> int:
        """Read the flags, do the work, print the answer, and return the exit status."""
        command = cls.read(parsed)
        answer = command.answer()
        if command.as_json:
            text = json.dumps(answer.data, ensure_ascii=False, indent=2, default=str)  # paths and dates are texts
            print(visible_in_json(text))
            return answer.status
        console = Terminal()
        for line in answer.lines:
            if isinstance(line, str):
                print(visible(line))
            elif (getattr(line, "width", None) or 0) > console.width:  # a table that must not wrap
                Terminal(width=line.width).print(line, highlight=False)
            else:
                console.print(line, highlight=False, soft_wrap=getattr(line, "no_wrap", None) is True)
        return answer.status
