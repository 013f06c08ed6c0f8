"""What a run consists of, and whether a run file has the same plan; if not, what differs."""

from __future__ import annotations

import hashlib
import json
import platform
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from parley.agents import ConfigError, ParleyError
from parley.judging import HasMeasures, Measure, Study, Unit
from parley.runs.analysis_plan import describe_plan
from parley.runs.store import RunFile

PACKAGES = ("parley-autogen", "pyautogen", "autogen-agentchat", "autogen-core", "aiohttp", "pydantic", "xllamacpp")


class PlanChanged(ParleyError):
    """The run file has another plan than the one requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a plan is: units, calls and tokens, and the hash of its units."""

    units: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    digest: str
    shared: Mapping[int, int]
    """Length in tokens of a prompt prefix shared with an earlier call of the same unit → number of such calls."""


def measure(study: Study) -> Size:
    """The size of a study's plan, in one pass over its units."""
    digest = hashlib.sha256()
    units = calls = prompt = completion = 0
    shared: Counter[int] = Counter()
    for unit in study.plan():
        digest.update(unit.id.encode() + b"\n" + json.dumps(dict(unit.facets), sort_keys=True).encode())
        estimate = study.estimate(unit)
        units += 1
        calls += estimate.calls
        prompt += estimate.prompt_tokens
        completion += estimate.completion_tokens
        shared.update(estimate.shared)
    return Size(
        units=units,
        calls=calls,
        prompt_tokens=prompt,
        completion_tokens=completion,
        digest=digest.hexdigest(),
        shared=shared,
    )


def refuse_empty(study: Study, size: Size) -> None:
    """Raise `ConfigError` if there is nothing to run: "0 of 0 units done" would look like a success."""
    if not size.units:
        raise ConfigError(f"there is nothing to run: with these settings and data, {study.name} has no units")


def describe(study: Study, target: str, size: Size) -> dict[str, Any]:
    """What the table `run` of a run file stores."""
    return {
        "study": study.name,
        "target": target,
        "config": study.config.model_dump(mode="json"),
        "models": study.models(),
        "sources": {**study.sources(), **weights_of(study)},
        "plan": size.digest,
        "units": size.units,
        "versions": {"python": platform.python_version(), **_versions()},
        **_describe_measures(study),
        **describe_plan(study),
    }


def _describe_measures(study: Study) -> dict[str, Any]:
    if not isinstance(study, HasMeasures):
        return {}
    if not all(isinstance(measure, Measure) for measure in study.measures):
        raise ConfigError(f"the measures of {study.name} must be instances of parley.judging.Measure")
    return {"measures": [asdict(measure) for measure in study.measures]}


def weights_of(study: Study) -> dict[str, str]:
    """The hashes of the weights that this machine has of the study's models."""
    from parley.agents.models.catalogue import weights_sha256

    hashes = ((name.partition("?")[0], weights_sha256(name)) for name in study.models())
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
    stored, requested = info["config"], study.config.model_dump(mode="json")
    for key in sorted({*stored, *requested}):
        if stored.get(key) != requested.get(key):
            yield f"{key}: {_brief(stored.get(key))} in the file, {_brief(requested.get(key))} requested"
    for name, digest in study.sources().items():
        if info["sources"].get(name) != digest:
            yield f"{name} has changed"
    for name, digest in weights_of(study).items():
        if info["sources"].get(name, digest) != digest:  # it may have begun before they were on this machine
            yield f"the {name} have changed"
    if info["models"] != study.models():
        yield f"models: {_brief(info['models'])} in the file, {_brief(study.models())} requested"
    old_prompts = file.prompts()
    new_prompts = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in study.prompts().items()}
    for name in sorted({*old_prompts, *new_prompts}):
        if old_prompts.get(name) != new_prompts.get(name):
            removed = "was removed" if name not in new_prompts else "has changed"
            change = "is new" if name not in old_prompts else removed
            yield f"prompt {name} {change}"
    if info["plan"] != size.digest and stored == requested:
        yield f"the plan has changed (units: {info['units']} in the file, {size.units} requested)"


def _brief(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


def pending(file: RunFile, study: Study) -> Iterator[Unit]:
    """The units that are not done, failed ones included, in the order of the plan."""
    return (unit for unit in study.plan() if file.status(unit.id) != "done")
