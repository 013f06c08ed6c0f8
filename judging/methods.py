"""Methods of a study by name: ours, those of installed packages (entry points), and files of the user's.

A study that compares methods keeps one `Methods`; each method is a small class with `name`, `Settings` and whatever the
study's own contract asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from agents import ConfigError
from judging.registry import load_module

M = TypeVar("M")


class NoSettings(BaseModel):
    """A method without settings of its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Methods(Generic[M]):
    """`shipped` maps names to module:Class; `group` is that of entry points; `contract` the file that tells more."""

    shipped: Mapping[str, str]
    group: str
    members: Sequence[str]
    contract: str

    def known(self) -> dict[str, str]:
        return {**{entry.name: entry.value for entry in entry_points(group=self.group)}, **self.shipped}

    def find(self, name: str) -> type[M]:
        target = self.known().get(name, name)
        module_name, colon, class_name = target.rpartition(":")
        if not colon:
            known = ", ".join(self.known())
            raise ConfigError(f"unknown method '{name}' (known: {known}; or your own as file.py:Class or module:Class)")
        method: Any = getattr(load_module(module_name), class_name, None)
        missing = [member for member in self.members if not hasattr(method, member)]
        if method is None or missing:
            why = f"lacks {', '.join(missing)}" if method is not None else "is not there"
            raise ConfigError(f"{target} is not a method: {class_name} {why} (see {self.contract})")
        return method  # type: ignore[no-any-return]

    def make(self, names: Sequence[str], settings: Mapping[str, str]) -> dict[str, M]:
        """The methods by their own names, each with the settings that are its own; one that is nobody's is refused."""
        classes: list[Any] = [self.find(name) for name in names]
        known = {key for method in classes for key in method.Settings.model_fields}
        if strangers := sorted(set(settings) - known):
            have = f"they have: {', '.join(sorted(known))}" if known else "they have none"
            raise ConfigError(f"none of the methods chosen has a setting '{strangers[0]}' ({have})")
        made: dict[str, M] = {}
        for method in classes:
            own = {key: value for key, value in settings.items() if key in method.Settings.model_fields}
            try:
                chosen = method.Settings.model_validate(own)
            except ValidationError as error:
                first = error.errors()[0]
                raise ConfigError(f"{method.name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
            if method.name in made:
                raise ConfigError(f"the method '{method.name}' is named twice")
            made[method.name] = method(chosen)
        return made


def read_settings(given: Sequence[str]) -> dict[str, str]:
    """`key=value`, several."""
    pairs = [one.partition("=") for one in given]
    for key, equals, _ in pairs:
        if not equals or not key.strip():
            raise ConfigError(f"a setting is written key=value, not '{key}'")
    return {key.strip(): value.strip() for key, _, value in pairs}
