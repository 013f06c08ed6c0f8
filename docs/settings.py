"""`python -m docs.settings`: write parley/runs/settings.py, the types of `parley.run`'s keywords, from the configs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from parley.runs.studies import find_study

TARGET = Path(__file__).parents[1] / "parley" / "runs" / "settings.py"
STUDIES = ("malibu", "bbq", "squad", "rldf", "stardtox", "injection", "card")
"""The studies whose settings have types."""
HEAD = '''"""The settings of the main studies, as keywords of `parley.run`: for editors and type checkers.

Made from the studies' configs by `python -m docs.settings`; edit those instead.
"""

# The overload that never returns takes what the others do not, so it overlaps with them.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Literal, NoReturn, Protocol, TypedDict, TypeVar, Unpack, cast, overload

from parley.runs import job
from parley.runs.engine import Result
from parley.runs.options import Options

R = TypeVar("R", covariant=True)


class Execution(TypedDict, total=False):
    """How any study is executed, and where its run file is."""

    options: Options | None
    out: str | None
'''
SETTINGS = '''
class {title}Settings(Execution, total=False):
    """The keywords of `parley.run("{name}", …)`."""

{keys}
'''
CALLS = '''
class RunsStudy(Protocol[R]):
    """`parley.run`, by the study's name."""
'''
CALL = """
    @overload
    def __call__(self, target: Literal["{name}"]{default}, **config: Unpack[{title}Settings]) -> R: ...
"""
TAIL = """
    # A main study with other settings raises `ConfigError`. Without this, the last one would take them.
    @overload
    def __call__(self, target: Literal[{names}], **config: object) -> NoReturn: ...

    @overload
    def __call__(
        self, target: str, *, options: Options | None = None, out: str | None = None, **config: Any
    ) -> R: ...


run = cast("RunsStudy[Result]", job.run)
run_async = cast("RunsStudy[Coroutine[Any, Any, Result]]", job.run_async)
"""


def as_source(annotation: Any) -> str:
    """A type as it is written; a list as any sequence."""
    inside = get_args(annotation)
    if annotation is type(None):
        return "None"
    if not inside:
        return str(annotation.__name__)
    if get_origin(annotation) is list:
        return f"Sequence[{as_source(inside[0])}]"
    if "Literal" in str(get_origin(annotation)):
        return f"Literal[{', '.join(map(repr, inside))}]"
    return " | ".join(map(as_source, inside))


def type_of(field: FieldInfo) -> str:
    """What a setting accepts; where a validator takes one member for a list, that too."""
    accepted = as_source(field.annotation)
    single = any(type(each).__name__ == "BeforeValidator" for each in field.metadata)
    return f"{as_source(get_args(field.annotation)[0])} | {accepted}" if single else accepted


def source() -> str:
    """The module, formatted."""
    text, calls = HEAD, CALLS
    for name in STUDIES:
        fields = find_study(name).Config.model_fields
        keys = "\n".join(f"    {key}: {type_of(field)}" for key, field in fields.items())
        text += SETTINGS.format(title=name.title(), name=name, keys=keys)
        calls += CALL.format(name=name, title=name.title(), default=' = "malibu"' if name == "malibu" else "")
    text += calls + TAIL.format(names=", ".join(f'"{name}"' for name in STUDIES))
    command = [sys.executable, "-m", "ruff", "format", "-q", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    TARGET.write_text(source(), "utf-8")
