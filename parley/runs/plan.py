"""What a run is made of, and whether a file on disk is the same run: if not, what differs is named."""

from __future__ import annotations

import hashlib
import json
import platform
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from parley.agents import ParleyError
from parley.judging import Study, Unit
from parley.runs.store import RunFile

PACKAGES = ("parley-autogen", "pyautogen", "autogen-agentchat", "autogen-core", "aiohttp", "pydantic", "xllamacpp")


class PlanChanged(ParleyError):
    """The file holds another plan than the one that was asked for."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a plan is: units, calls and tokens, and the hash of its units."""

    units: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    digest: str
    shared: Mapping[int, int]
    """How many calls begin with so many tokens that an earlier call of their unit began with too."""


def measure(study: Study) -> Size:
    """Goes through the plan once, keeping nothing but sums and a hash."""
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
    return Size(units, calls, prompt, completion, digest.hexdigest(), shared)


def describe(study: Study, target: str, size: Size) -> dict[str, Any]:
    """All that a run file says about itself."""
    return {
        "study": study.name,
        "target": target,
        "config": study.config.model_dump(mode="json"),
        "models": study.models(),
        "sources": dict(study.sources()),
        "plan": size.digest,
        "units": size.units,
        "versions": {"python": platform.python_version(), **_versions()},
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def refuse_if_changed(file: RunFile, study: Study, size: Size) -> None:
    """Going on is only for the same plan: same config, data and prompts."""
    if differences := list(_differences(file, study, size)):
        raise PlanChanged(
            f"{file.path} holds another run ({'; '.join(differences)}); "
            "go on with what it was made with, or name another file with --out"
        )


def _differences(file: RunFile, study: Study, size: Size) -> Iterator[str]:
    info = file.info()
    if info["study"] != study.name:
        yield f"study: {info['study']} there, {study.name} asked for"
        return
    before, now = info["config"], study.config.model_dump(mode="json")
    for key in sorted({*before, *now}):
        if before.get(key) != now.get(key):
            yield f"{key}: {_brief(before.get(key))} there, {_brief(now.get(key))} asked for"
    for name, digest in study.sources().items():
        if info["sources"].get(name) != digest:
            yield f"{name} has changed"
    if info["models"] != study.models():
        yield f"models: {_brief(info['models'])} there, {_brief(study.models())} asked for"
    kept = file.prompts()
    asked = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in study.prompts().items()}
    for name in sorted({*kept, *asked}):
        if kept.get(name) != asked.get(name):
            what = "is new" if name not in kept else "is gone" if name not in asked else "has changed"
            yield f"prompt {name} {what}"
    if info["plan"] != size.digest and info["config"] == now:
        yield f"the plan has changed: {info['units']} units there, {size.units} asked for"


def _brief(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


def pending(file: RunFile, study: Study) -> Iterator[Unit]:
    """The units still to be done, failed ones again, in the order of the plan."""
    return (unit for unit in study.plan() if file.status(unit.id) != "done")
