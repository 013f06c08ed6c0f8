"""Replaces prompts with the user's: text files in a folder, each named after the prompt that it replaces.

    parley run rldf --design paper --prompts-to mine       # mine/rldf/open.txt, mine/persona/Referee.txt, …
    parley run rldf --design paper --prompts-from mine     # other prompts stay as shipped

The first line of a file may have options, separated by `;`: `#! without: words, roster` lets a prompt omit these
placeholders, and `#! reader: lines` names a reader for replies in another format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from string import Formatter

from parley.base.errors import ConfigError, several
from parley.base.files import new_folder
from parley.base.problems import near_key
from parley.judging import Study
from parley.judging.prompts import USERS_PROMPTS, UsersPrompt
from parley.judging.readers import READERS

_HEAD = re.compile(r"\A\ufeff?#!(.*)\n?")
READER, WITHOUT = "reader", "without"


def with_users_prompts(folder: str, make: Callable[[], Study]) -> Study:
    """Make the study with the prompts of a folder.

    Args:
        folder: The folder.
        make: Makes the study; so far with the shipped prompts.
    """
    study = make()
    files = {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(Path(folder).rglob("*.txt"))}
    if not files:
        raise ConfigError(f"{folder} has no prompts: parley run {study.name} --prompts-to {folder} writes ours")
    ours, prompts, problems = study.prompts(), dict[str, UsersPrompt](), list[str]()
    for name, path in files.items():
        if name not in ours:
            problems.append(f"{path}: {study.name} has no prompt '{name}'{near_key(name, [*ours])}")
            continue
        try:
            text = path.read_text("utf-8")
            head = _head(text)
            READERS.find(head.get(READER, "lines"))
            prompts[name] = UsersPrompt(_HEAD.sub("", text).strip(), head.get(READER, ""))
            problems += [f"{path}: {line}" for line in _placeholder_problems(prompts[name].text, ours[name], head)]
        except (OSError, ValueError, ConfigError) as error:
            problems.append(f"{path}: {error}")
    if not problems:
        prompts = {name: prompt for name, prompt in prompts.items() if prompt != UsersPrompt(ours[name])}
        USERS_PROMPTS.set(prompts)
        study = make()
        filled = (name for name, text in study.prompts().items() if name in prompts and text != prompts[name].text)
        problems = [
            f"{files[name]}: {name} cannot be replaced; --prompts-to writes the prompts that can" for name in filled
        ]
    if problems:
        raise several(ConfigError, problems)
    return study


def write_prompts(folder: Path, make: Callable[[], Study]) -> int:
    """Write all prompts of a study that can be replaced; returns their number.

    Args:
        folder: A new folder.
        make: Makes the study.
    """
    USERS_PROMPTS.set({})
    ours = make().prompts()
    # Some texts are filled in or come from other files: only a study made again shows which ones it takes.
    USERS_PROMPTS.set({name: UsersPrompt(f"{text}\n{name}") for name, text in ours.items()})
    taken = [name for name, text in make().prompts().items() if text == f"{ours.get(name)}\n{name}"]
    USERS_PROMPTS.set({})
    with new_folder(folder) as part:
        for name in taken:
            path = part / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{ours[name]}\n", "utf-8")
    return len(taken)


def _head(text: str) -> Mapping[str, str]:
    """Parse the first line: `#! reader: lines; without: words, roster`."""
    head = _HEAD.match(text)
    pairs = [part.partition(":") for part in (head[1].split(";") if head else ())]
    if wrong := next(
        (key for key, _, value in pairs if key.strip() not in (READER, WITHOUT) or not value.strip()), None
    ):
        raise ConfigError(
            f"the first line says '{wrong.strip()}': expected #! {READER}: NAME; {WITHOUT}: PLACEHOLDER, …"
        )
    return {key.strip(): value.strip() for key, _, value in pairs}


def _placeholder_problems(text: str, ours: str, head: Mapping[str, str]) -> Iterator[str]:
    """Problems with placeholders: unknown ones, and missing ones that are not listed. An empty prompt is allowed."""
    try:
        used = _placeholders(text)
    except ValueError:
        raise ConfigError("a brace stands alone; write {{ and }} where they stand for themselves") from None
    placeholders = _placeholders(ours)
    for name in sorted(used - placeholders):
        yield (
            f"nothing fills in {{{name}}} (known: {', '.join(sorted(placeholders))})"
            if placeholders
            else f"nothing fills in {{{name}}}"
        )
    allowed = {name.strip() for name in head.get(WITHOUT, "").split(",")}
    for name in sorted(placeholders - used - allowed if text else ()):
        yield f"{{{name}}} is missing; a first line '#! {WITHOUT}: {name}' leaves it out"


def _placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name and name.isidentifier()}
