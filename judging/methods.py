"""Methods of a study by name: the shipped ones, those of installed packages (entry points), and your own files.

A study that compares methods has one `Methods`; each method is a small class with `name`, `Settings` and the other
members that the study's protocol requires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from parley.agents import ConfigError
from parley.base.plugins import Registry

M = TypeVar("M")


class NoSettings(BaseModel):
    """The settings of a method that has none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Methods(Generic[M]):
    """The methods of one study.

    Args:
        shipped: Names and their `module:Class`.
        group: The group of entry points by which installed packages add methods.
        members: What a method's class must have.
        contract: The file that documents these members, for error messages.
    """

    shipped: Mapping[str, str]
    group: str
    members: Sequence[str]
    contract: str

    def _registry(self) -> Registry:
        return Registry("method", self.group, self.shipped, self.members, self.contract)

    def known(self) -> dict[str, str]:
        """The names of all methods, including those of installed packages."""
        return self._registry().known()

    def find(self, name: str) -> type[M]:
        """The class of a method, by its name, by `file.py:Class` or `module:Class`."""
        method: type[M] = self._registry().find(name)
        return method

    def make(self, names: Sequence[str], settings: Mapping[str, str]) -> dict[str, M]:
        """The methods by name, each with the settings that it has.

        Args:
            names: The methods to make.
            settings: Settings of any of them, as text; one that no method has is an error.
        """
        classes: list[Any] = [self.find(name) for name in names]
        known = {key for method in classes for key in method.Settings.model_fields}
        if unknown := sorted(set(settings) - known):
            have = f"known: {', '.join(sorted(known))}" if known else "they have no settings"
            raise ConfigError(f"none of the chosen methods has a setting '{unknown[0]}' ({have})")
        methods: dict[str, M] = {}
        for method in classes:
            own = {key: value for key, value in settings.items() if key in method.Settings.model_fields}
            try:
                validated = method.Settings.model_validate(own)
            except ValidationError as error:
                first = error.errors()[0]
                raise ConfigError(f"{method.name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
            if method.name in methods:
                raise ConfigError(f"the method '{method.name}' is given twice")
            methods[method.name] = method(validated)
        return methods


def read_settings(texts: Sequence[str]) -> dict[str, str]:
    """The settings of `key=value` texts."""
    pairs = [text.partition("=") for text in texts]
    for key, equals, _ in pairs:
        if not equals or not key.strip():
            raise ConfigError(f"a setting must be written key=value, got '{key}'")
    return {key.strip(): value.strip() for key, _, value in pairs}
