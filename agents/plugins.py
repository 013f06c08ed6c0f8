"""What users bring: a module by its name, or a Python file of theirs."""

from __future__ import annotations

import importlib.util
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from agents.errors import ConfigError


def load_module(name: str) -> Any:
    """A module by its name, or a file of the user's."""
    if not name.endswith(".py"):
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            raise ConfigError(f"there is no module '{error.name}'") from None
        except (SyntaxError, ImportError) as error:
            raise ConfigError(f"{name} cannot be loaded: {error}") from None
    path = Path(name)
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    name = f"parley_study_{path.stem}"  # never the name of a package of ours
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} cannot be read as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (SyntaxError, ImportError) as error:
        raise ConfigError(f"{path} cannot be loaded: {error}") from None
    return module
