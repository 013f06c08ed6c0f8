"""A run's plan, and its comparison with the plan in a run file.

The analysis plan is stored in the run file with its SHA-256 when the run begins, and never written again. The table
`run` has it under `analysis_plan` and `analysis_plan_sha256`, if the study has a plan. The hash shows whether a plan
was changed afterwards.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import Any

from pydantic import ValidationError

from parley.agents.providers import provider_of
from parley.base.errors import ConfigError, ParleyError
from parley.base.text import plural
from parley.judging import Facet, Labelled, Measure, Study, Unit
from parley.judging.prompts import USERS_PROMPTS
from parley.runs.store import RunFile

_WORD = re.compile(r"[^\W_][\w-]*")
UNITS_AT_ONCE = 256
MOST_UNITS = 1_000_000
"""Maximum units of a plan, which is read several times: a larger one would take minutes before the first call."""
PACKAGES = ("parley-autogen", "pyautogen", "autogen-agentchat", "autogen-core", "aiohttp", "pydantic", "xllamacpp")


class PlanChanged(ParleyError):
    """The run file has another plan than the one requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The number of units in a plan, and their hash."""

    units: int
    digest: str


def measure(study: Study) -> Size:
    """The size of a study's plan, in one pass over its units; `ConfigError` if it has more than `MOST_UNITS`."""
    digest, units = hashlib.sha256(), 0
    for unit in study.plan():
        digest.update(unit.id.encode() + b"\n" + json.dumps(dict(unit.facets), sort_keys=True).encode())
        units += 1
        if units > MOST_UNITS:
            raise ConfigError(f"these settings make more than {MOST_UNITS:,} units, too many for one run; make several")
    return Size(units=units, digest=digest.hexdigest())


def refuse_empty(study: Study, size: Size) -> None:
    """Raise `ConfigError` if there is nothing to run: "0 of 0 units done" would look like a success."""
    if not size.units:
        raise ConfigError(f"there is nothing to run: with these settings and data, {study.name} has no units")


def refuse_unknown_labels(study: Study) -> None:
    """Raise `ConfigError` if a simulated model has an effect for a label or a judge that the study does not have.

    A label is a facet of a unit (an identity), a word of the prompts (a metric, a role), or an identity that other runs
    of the study may have.
    """
    simulated = [name for name in study.models() if provider_of(name).simulated and "?" in name]
    if not simulated:
        return
    # Loaded here: what reads a run file needs neither AutoGen nor the suites.
    from parley.agents.models.sim import refuse_unknown_effects
    from parley.scenarios import ALL as IDENTITIES

    prompts = study.prompts()
    labels = {*IDENTITIES, *(str(value) for unit in study.plan() for value in unit.facets.values())}
    labels |= {word.lower() for pair in prompts.items() for text in pair for word in _WORD.findall(text)}
    personas = {name.removeprefix("persona/"): text for name, text in prompts.items() if name.startswith("persona/")}
    for name in simulated:
        refuse_unknown_effects(name, labels, study.name, personas or prompts)


def ingredients(study: Study) -> tuple[str, list[tuple[str, str]], list[tuple[str, str]]]:
    """All that a study's results depend on, on this machine: its config, data and prompts."""
    return study.config.model_dump_json(), sorted(study.sources().items()), sorted(prompts_of(study).items())


def prompts_of(study: Study) -> dict[str, str]:
    """A study's prompts by name, with the readers of the user's prompts."""
    readers = {f"reader of {name}": prompt.reader for name, prompt in USERS_PROMPTS.get().items() if prompt.reader}
    return {**study.prompts(), **readers}


def describe(study: Study, target: str, size: Size) -> dict[str, Any]:
    """The contents of a run file's table `run`."""
    replaced = {"replaced prompts": ", ".join(sorted(USERS_PROMPTS.get()))} if USERS_PROMPTS.get() else {}
    return {
        "study": study.name,
        "target": target,
        "config": study.config.model_dump(mode="json"),
        "models": study.models(),
        "sources": {**study.sources(), **weights_of(study), **replaced},
        "plan": size.digest,
        "units": size.units,
        "versions": {"python": platform.python_version(), **_versions()},
        # For pages that show its runs without loading its code:
        "measures": _declared(study.measures, Measure, f"the measures of {study.name}"),
        "facets": _declared(study.facets, Facet, f"the facets of {study.name}"),
        "labelled": _declared(study.labelled, Labelled, f"what people score of {study.name}"),
        **describe_plan(study),
    }


def _declared(items: tuple[Any, ...], kind: type, what: str) -> list[dict[str, Any]]:
    if not all(isinstance(item, kind) for item in items):
        raise ConfigError(f"{what} must be instances of parley.judging.{kind.__name__}")
    return [asdict(item) for item in items]


def weights_of(study: Study) -> dict[str, str]:
    """Hashes of the weights of the study's models on this machine."""
    from parley.agents.models.catalogue import weights_sha256

    embedded = [name for name in study.models() if provider_of(name).embedded]
    hashes = ((name.partition("?")[0], weights_sha256(name)) for name in embedded)
    return {f"weights of {model}": digest for model, digest in hashes if digest is not None}


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def refuse_if_changed(file: RunFile, study: Study, size: Size) -> None:
    """Raise `PlanChanged` unless the file has the same config, data and prompts: only then can it be resumed."""
    if differences := list(_differences(file, study, size)):
        raise PlanChanged(
            f"{file.path} contains a different run ({'; '.join(differences)}); "
            "resume it with the same settings, or choose another file with --out"
        )


def _differences(file: RunFile, study: Study, size: Size) -> Iterator[str]:
    info = file.info()
    if info["study"] != study.name:
        yield f"study: {info['study']} in the file, {study.name} requested"
        return
    requested = study.config.model_dump(mode="json")
    # What was a setting then may be a constant or a property of the config now, with the same value.
    stored = {
        key: value
        for key, value in info["config"].items()
        if key in requested or getattr(study.config, key, None) != value
    }
    with suppress(ValidationError):  # left open by an older file, set by a preset
        stored = type(study.config).model_validate(stored).model_dump(mode="json")
    # A setting that one lacks and the other has not set is not a difference.
    changed = [key for key in sorted({*stored, *requested}) if stored.get(key) != requested.get(key)]
    for key in changed:
        yield f"{key}: {_brief(stored.get(key))} in the file, {_brief(requested.get(key))} requested"
    for name, digest in study.sources().items():
        if info["sources"].get(name) != digest:
            yield f"{name} has changed"
    for name, digest in weights_of(study).items():
        if info["sources"].get(name, digest) != digest:  # it may have begun before they were on this machine
            yield f"the {name} have changed"
    if info["models"] != study.models() and "model" not in changed:
        yield f"models: {_brief(info['models'])} in the file, {_brief(study.models())} requested"
    old_prompts = file.prompts()
    new_prompts = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in prompts_of(study).items()}
    for name in sorted({*old_prompts, *new_prompts}):
        if old_prompts.get(name) != new_prompts.get(name):
            removed = "was removed" if name not in new_prompts else "has changed"
            change = "is new" if name not in old_prompts else removed
            yield f"prompt {name} {change}"
    if info["plan"] != size.digest and not changed:
        other = "; ".join(_other_units(file, study))
        sizes = f"units: {info['units']} in the file, {size.units} requested"
        yield f"the plan has changed ({sizes}{'; ' if other else ''}{other})"


def _other_units(file: RunFile, study: Study) -> Iterator[str]:
    """Units of a file that a study does not plan, as an earlier version did, and facets that it plans otherwise."""
    planned = {unit.id: dict(unit.facets) for unit in study.plan()}
    stored = {
        str(id): json.loads(facets) for id, facets in file.rows("SELECT id, facets FROM units ORDER BY position")[1]
    }
    if gone := [id for id in stored if id not in planned]:
        yield f"not planned now: {plural(len(gone), 'unit')}, first '{gone[0]}'"
    both = [(facets, planned[id]) for id, facets in stored.items() if id in planned]
    names = {name for old, new in both for name in {*old, *new} if old.get(name) != new.get(name)}
    if names:
        yield f"other facets: {', '.join(sorted(names))}"


def _brief(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


def pending(file: RunFile, study: Study) -> Iterator[Unit]:
    """The units that are not done, including failed ones, in the plan's order."""
    plan = iter(study.plan())
    # One query for many units: separate queries took an eighth of the time of a run of one-token calls.
    while units := list(islice(plan, UNITS_AT_ONCE)):
        done = file.done_among([unit.id for unit in units])
        yield from (unit for unit in units if unit.id not in done)


PLAN, HASH = "analysis_plan", "analysis_plan_sha256"
"""Keys of the table `run`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """The analysis plan in a run file."""

    plan: Mapping[str, Any]
    sha256: str
    """The stored hash."""
    intact: bool
    """Whether the hash matches the plan."""


def plan_sha256(plan: Any) -> str:
    """The SHA-256 of a plan: of its JSON with sorted keys, without spaces, in ASCII.

    Args:
        plan: JSON data.
    """
    text = json.dumps(plan, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def describe_plan(study: Study) -> dict[str, Any]:
    """The entries of the table `run` about a study's analysis plan; empty if it has none.

    Only for a new file: a run that was begun without a plan never gets one when it is resumed, after data.
    """
    plan: Any = study.analysis_plan()
    if plan is None:
        return {}
    try:
        plan = json.loads(json.dumps(plan, allow_nan=False))  # as read back: keys are strings, tuples are lists
        digest = plan_sha256(plan)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"the analysis plan of {study.name} is not JSON data: {error}") from None
    if not isinstance(plan, dict):
        raise ConfigError(f"the analysis plan of {study.name} must be a mapping, not a {type(plan).__name__}")
    return {PLAN: plan, HASH: digest}


def stored_plan(info: Mapping[str, Any]) -> StoredPlan | None:
    """The analysis plan in a run file; None if the run was begun without one.

    Args:
        info: The table `run`, see `RunFile.info`.
    """
    if PLAN not in info and HASH not in info:
        return None
    plan, digest = info.get(PLAN), str(info.get(HASH, ""))
    try:
        intact = isinstance(plan, dict) and plan_sha256(plan) == digest
    except (ValueError, RecursionError):
        intact = False
    return StoredPlan(plan=plan if isinstance(plan, dict) else {}, sha256=digest, intact=intact)
