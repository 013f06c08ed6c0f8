"""Methods of a study by name: ours, those of installed packages (entry points), and files of the user's.

A study that compares methods keeps one `Methods`; each method is a small class with `name`, `Settings` and whatever the
study's own contract asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from parley.agents import ConfigError
from parley.agents.plugins import Registry

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

    def _registry(self) -> Registry:
        return Registry("method", self.group, self.shipped, self.members, self.contract)

    def known(self) -> dict[str, str]:
        """The names of all methods, those of installed packages included."""
        return self._registry().known()

    def find(self, name: str) -> type[M]:
        """The class of a method, by its name, by `file.py:Class` or `module:Class`."""
        method: type[M] = self._registry().find(name)
        return method

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
