"""Plug-ins by name: shipped ones, and users' as `file.py:Class` or `module:Class`.

    ENGINES = Registry("search engine", {"duckduckgo": "parley.agents.search.web:DuckDuckGo"})
    ENGINES.find("duckduckgo")
    ENGINES.find("my_engine.py:Library")

Studies, methods, scorers and search engines are all found this way.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from parley.base.errors import ConfigError

_FOLDERS_OF_FILES: set[str] = set()


def load_module(name: str) -> ModuleType:
    """Import a module by its dotted name, or a Python file by its path (`something.py`)."""
    if not name.endswith(".py"):
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            raise ConfigError(f"there is no module '{error.name}'") from None
        except (Exception, SystemExit) as error:
            raise ConfigError(_cannot_load(name, error)) from error
    path = Path(name)
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    if (folder := os.path.abspath(path.parent)) not in sys.path:
        sys.path.append(folder)  # it may import its neighbours; last, so that none of them replaces a module
        _FOLDERS_OF_FILES.add(folder)
    module_name = f"parley_plugin_{path.stem}"  # a prefix, so that a file named random.py replaces no module
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} cannot be read as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # before it runs, as importlib does: dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[module_name]
        raise ConfigError(_cannot_load(name, error)) from error
    return module


def _cannot_load(name: str, error: BaseException) -> str:
    """The error for a plug-in that raised while it was imported; `__cause__` is the exception."""
    if isinstance(error, SyntaxError | ImportError):
        return f"{name} cannot be loaded: {error}"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{name} cannot be loaded: {type(error).__name__}: {error} ({last.filename}, line {last.lineno})"


def load_object(target: str) -> Any:
    """The object that `module:name` or `file.py:name` refers to; None if the module has no such name."""
    module_name, _, name = target.rpartition(":")
    return getattr(load_module(module_name), name, None)


@dataclass(frozen=True, slots=True)
class Registry:
    """All plug-ins of one kind.

    Args:
        kind: The kind's name in error messages ("study").
        shipped: Shipped plug-ins, as name → `module:Class`.
        members: Required attributes; empty if the kind checks them itself.
        base: The required base class, if any.
        contract: The file that documents the interface, for error messages.
        others: Further forms of names for error messages (`folder:DIR`).
    """

    kind: str
    shipped: Mapping[str, str]
    members: Sequence[str] = ()
    contract: str = ""
    others: Sequence[str] = ()
    base: type | None = None

    def find(self, name: str) -> Any:
        """The class for a name, `module:Class` or `file.py:Class`."""
        target = self.shipped.get(name, name)
        if ":" not in target:
            names = [*self.shipped, *self.others]
            similar = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {similar[0]}? " if similar else ""
            raise ConfigError(
                f"unknown {self.kind} '{name}' ({hint}known: {', '.join(names)}; "
                "or your own as file.py:Class or module:Class)"
            )
        class_name = target.rpartition(":")[2]
        plugin = load_object(target)
        missing = [member for member in self.members if not hasattr(plugin, member)]
        if self.base and isinstance(plugin, type) and issubclass(plugin, self.base):
            missing += sorted(getattr(plugin, "__abstractmethods__", ()))
        elif self.base and plugin is not None:
            raise ConfigError(
                f"{target} is not a {self.kind}: write class {class_name}({self.base.__name__}), with "
                f"from {self.base.__module__.rpartition('.')[0]} import {self.base.__name__}"
            )
        if plugin is None or missing:
            reason = f"lacks {', '.join(missing)}" if plugin is not None else "does not exist"
            see = f" (see {self.contract})" if self.contract else ""
            raise ConfigError(f"{target} is not a {self.kind}: {class_name} {reason}{see}")
        return plugin


def absolute_path() -> tuple[str, ...]:
    """This process's `sys.path` with absolute entries: "" is the current folder.

    Folders of plug-in files are left out: another process adds them when it loads the file.
    """
    entries = [entry for entry in sys.path if isinstance(entry, str) and entry not in _FOLDERS_OF_FILES]
    return tuple(map(os.path.abspath, entries))


def child_environment() -> dict[str, str]:
    """The environment for a Python started with `-P`, so that it finds the same modules.

    `python -c`, `python -m` and an empty entry of PYTHONPATH each put the current folder first, and then anybody's
    `random.py` in it runs as code. Parley itself is still found, as in a checkout.
    """
    environment, searched = dict(os.environ), set(absolute_path())
    entries = [os.path.abspath(entry) for entry in environment.pop("PYTHONPATH", "").split(os.pathsep) if entry]
    ours = str(Path(os.path.abspath(__file__)).parents[2])
    if ours in searched.difference(entries, map(sysconfig.get_path, ("purelib", "platlib"))):
        entries.insert(0, ours)
    if kept := [entry for entry in entries if entry in searched]:
        environment["PYTHONPATH"] = os.pathsep.join(kept)
    return environment
