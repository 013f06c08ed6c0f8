"""`parley doctor [MODEL…]`: what is installed, which keys and proxies are set, which models can be reached, which GPU.

    examination = asyncio.run(examine())

No model is called, and nothing costs money. Providers whose key is set are asked for their list of models, which
is free; your own servers are asked at their usual address. Keys are never shown, only whether they are set.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import re
import subprocess
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import groupby
from typing import ClassVar, Literal, get_args
from urllib.request import getproxies_environment

import aiohttp
from pydantic import Field
from rich.console import Console

from parley.agents import Client
from parley.agents.models import model
from parley.agents.models.catalogue import catalogue, is_fetched
from parley.agents.models.http import TooLong, open_session, read_body
from parley.agents.providers import PROVIDERS, provider_of
from parley.base.address import without_password
from parley.base.errors import ConfigError, install
from parley.base.text import plural, visible
from parley.cli.command import Answer, Command
from parley.cli.flags import Positional

DISTRIBUTION = "parley-autogen"
SECONDS = 3.0
"""How long a provider may take to answer."""
MAX_LIST_BYTES = 8 * 2**20
ALSO_ACCEPTED = {"google": ("GOOGLE_API_KEY",)}
"""Alternative key variables of a provider."""
OTHER_KEYS = (
    "GOOGLE_API_KEY",
    "VLLM_API_KEY",
    "PARLEY_SERVER_KEY",
    "HF_TOKEN",
)
"""Environment variables with keys, in addition to those of `PROVIDERS`."""
NOT_FOR_USERS = ("dev", "docs", "notebooks")
"""Extras for developing Parley."""
LABEL, STATE = 10, 14
"""Column widths of labels and of a model's state."""

Versions = dict[str, str | None]
"""Packages with their versions; None if not installed."""
State = Literal["ready", "on first use", "no key", "not set up", "not reached", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Whether a provider's models, or a named model, can be used.

    Args:
        name: The provider with a slash, or the model.
        state: The state, in one to three words.
        detail: Details, or what to do.
    """

    name: str
    state: State
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """All results of the examination."""

    python: str
    system: str
    packages: Versions
    """Required packages, Parley first."""
    extras: dict[str, Versions]
    keys: dict[str, bool]
    """Whether each environment variable is set."""
    models: list[Reached]
    gpus: list[str]
    """Names of GPUs with their memory."""
    proxies: dict[str, str]
    """Addresses of proxies by scheme, from the environment; without user and password."""
    problems: list[str] = field(default_factory=list)
    """Problems with the setup."""


class Doctor(Command):
    """Check what is installed, which keys and proxies are set, and which models can be reached."""

    epilog: ClassVar = (
        "This calls no model. It only asks providers whose key is set for their list of models, which is free. "
        "`pip check` compares packages' versions. Exit status: 1 if a key is refused or a named model cannot be used."
    )
    model: Positional[list[str]] = Field([], description="models to check by name, as provider/model")

    def answer(self) -> Answer:
        examined = asyncio.run(examine(self.model))
        return Answer(asdict(examined), _lines(examined), 1 if examined.problems else 0)


def _lines(examined: Examination) -> Iterator[str]:
    yield _line("parley", f"{_versions(examined.packages, 6)}; Python {examined.python}, {examined.system}")
    installed = [name for name, packages in examined.extras.items() if all(packages.values())]
    yield _line("extras", ", ".join(f"{name} ({_versions(examined.extras[name], 1)})" for name in installed) or "none")
    if missing := [name for name in examined.extras if name not in installed]:
        yield _line("", f"not installed: {', '.join(missing)} ({install('NAME')})")
    for what, wanted in (("set", True), ("not set", False)):
        names = [key for key, is_set in examined.keys.items() if is_set is wanted]
        yield _line("keys" if wanted else "", f"{what}: {', '.join(names) or 'none'}")
    for number, (state, rows) in enumerate(groupby(sorted(examined.models, key=_order), lambda row: row.state)):
        text = ", ".join(_in_words(row) for row in rows)
        yield _line("" if number else "models", f"{state + ':':<{STATE}}{text}", hanging=STATE)
    yield _line("GPU", ", ".join(examined.gpus) or "none")
    proxies = ", ".join(f"{scheme}: {address}" for scheme, address in examined.proxies.items())
    yield _line("proxy", proxies or "none")
    for number, problem in enumerate(examined.problems or ["no problems found"]):
        yield _line("problems" if examined.problems and not number else "", problem)


def _order(row: Reached) -> int:
    return get_args(State).index(row.state)


def _in_words(row: Reached) -> str:
    """The lines about a model; the line of keys names a missing key."""
    plain = row.state == "no key" or provider_of(row.name).simulated
    return row.name if plain else f"{row.name} ({row.detail})"


def _line(label: str, text: str, hanging: int = 0) -> str:
    return textwrap.fill(
        visible(text),
        Console().width,
        initial_indent=f"{label:<{LABEL}}",
        subsequent_indent=" " * (LABEL + hanging),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _versions(packages: Versions, most: int) -> str:
    return ", ".join(f"{name} {installed}" for name, installed in list(packages.items())[:most] if installed)


async def examine(names: Sequence[str] = ()) -> Examination:
    """Examine everything, with providers and servers concurrently.

    Args:
        names: Models to check in addition to the providers.
    """
    packages, extras = _packages()
    names_of_keys = [*(entry.key for entry in PROVIDERS.values() if entry.key), *OTHER_KEYS]
    keys = {key: bool(os.environ.get(key, "").strip()) for key in names_of_keys}
    # The catalogue's models are listed one by one; a server of one's own has no address to ask.
    providers = [provider for provider, entry in PROVIDERS.items() if not entry.on_cpu and provider != "server"]
    checks = [_check_provider(provider) for provider in providers]
    models = [*_embedded(), *await asyncio.gather(*checks)]
    named = await asyncio.gather(*map(check_model, names))
    problems = [
        *(f"{row.name} {row.state}: {row.detail}" for row in models if row.state == "refused"),
        *(f"{row.name} {row.state}: {row.detail}" for row in named if row.state not in ("ready", "on first use")),
    ]
    return Examination(
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        packages=packages,
        extras=extras,
        keys=keys,
        models=[*models, *named],
        gpus=_gpus(),
        proxies={scheme: without_password(address) for scheme, address in getproxies_environment().items()},
        problems=problems,
    )


@cache  # `parley models` asks once per provider
def _packages() -> tuple[Versions, dict[str, Versions]]:
    """The required packages, Parley first, and those of each extra. `pip check` compares the versions."""
    needed = {DISTRIBUTION: _version(DISTRIBUTION)}
    extras: dict[str, Versions] = {}
    with suppress(PackageNotFoundError):  # a checkout that is not installed
        for line in requires(DISTRIBUTION) or []:
            name, extra = re.match(r"[\w.-]+", line), re.search(r"extra == ['\"]([\w-]+)", line)
            assert name is not None, f"{line} is not a requirement"
            if not extra or extra[1] not in NOT_FOR_USERS:
                (extras.setdefault(extra[1], {}) if extra else needed)[name[0]] = _version(name[0])
    return needed, extras


def _version(name: str) -> str | None:
    with suppress(PackageNotFoundError):
        return version(name)
    return None


def _embedded() -> Iterator[Reached]:
    """The models of the catalogue."""
    missing = missing_extra("local")
    for name, entry in catalogue().items():
        size = f"{entry.size / 1e6:,.0f} MB"
        if missing:
            yield Reached(name=f"local/{name}", state="not set up", detail=missing)
        elif is_fetched(name):
            yield Reached(name=f"local/{name}", state="ready", detail=f"{size}, downloaded")
        elif entry.automatic:
            yield Reached(name=f"local/{name}", state="on first use", detail=f"{size}, downloaded then")
        else:
            yield Reached(name=f"local/{name}", state="not set up", detail=f"{size}: parley models fetch {name}")


def missing_extra(extra: str | None) -> str:
    """The command that installs an extra; empty if it is installed or none is needed."""
    return install(extra) if extra and not all(_packages()[1].get(extra, {}).values()) else ""


async def _check_provider(provider: str) -> Reached:
    entry, name = PROVIDERS[provider], f"{provider}/"
    keys = [key for key in (entry.key, *ALSO_ACCEPTED.get(provider, ())) if key]
    if keys and not any(os.environ.get(key, "").strip() for key in keys):
        return Reached(name=name, state="no key", detail=f"set {' or '.join(keys)}")
    if missing := missing_extra(entry.extra):
        return Reached(name=name, state="not set up", detail=missing)
    if entry.in_process:  # not made here: torch takes seconds to load
        return Reached(name=name, state="ready", detail="in this process")
    try:
        client = model(entry.example or f"{provider}/x")
    except (ConfigError, ImportError) as error:
        return Reached(name=name, state="not set up", detail=_reason(error, entry.example))
    return await _ask(client, name)


async def check_model(name: str) -> Reached:
    """Whether one model can be used.

    Args:
        name: The model, as provider/model.
    """
    try:
        client = model(name)
    except (ConfigError, ImportError) as error:
        return Reached(name=name, state="not set up", detail=_reason(error, name))
    if provider_of(name).embedded and client.model in catalogue() and not is_fetched(client.model):
        automatic = catalogue()[client.model].automatic
        detail = "downloaded then" if automatic else f"parley models fetch {client.model}"
        return Reached(name=name, state="on first use" if automatic else "not set up", detail=detail)
    return await _ask(client, name, wanted=client.model)


async def _ask(client: Client, name: str, wanted: str | None = None) -> Reached:
    """Ask for the list of models; `wanted` must be in it."""
    listing = client.model_list()
    await client.close()
    if listing is None:
        return Reached(name=name, state="ready", detail="in this process")
    host, started = listing[0].split("/")[2], time.monotonic()
    try:
        models = await _list(*listing)
    except _Unexpected as answer:
        state: State = "refused" if answer.status in (401, 403) else "not reached"
        reason = "the key is not accepted" if state == "refused" else "not with a list of models"
        return Reached(name=name, state=state, detail=f"{host} answered {answer.status}, {reason}")
    except TimeoutError:
        return Reached(name=name, state="not reached", detail=f"{host}: no answer in {SECONDS:g} s")
    except (aiohttp.ClientError, OSError):
        return Reached(name=name, state="not reached", detail=f"{host}: no connection")
    if wanted and models and not {wanted, f"{wanted}:latest"} & set(models):
        listed = ", ".join(entry[:40] for entry in models[:3]) + ", …" * (len(models) > 3)
        return Reached(name=name, state="not reached", detail=f"{host} has no '{wanted}' (it has: {listed})")
    count = f"{plural(len(models), 'model')}, " if models else ""
    return Reached(name=name, state="ready", detail=f"{host}: {count}{time.monotonic() - started:.1f} s")


class _Unexpected(Exception):
    """The provider answered with a status other than 200."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


async def _list(url: str, headers: dict[str, str]) -> list[str]:
    async with (
        open_session(url, SECONDS) as session,
        # A redirect would take the key to another server.
        session.get(url, headers=headers, allow_redirects=False) as response,
    ):
        if response.status != 200:
            raise _Unexpected(response.status)
        try:
            table = json.loads(await read_body(response, MAX_LIST_BYTES))
            entries = table.get("data") or table.get("models") or []
            return [str(entry.get("id") or entry["name"]).removeprefix("models/") for entry in entries]
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError, TooLong):
            return []


def _reason(error: Exception, name: str) -> str:
    """The error without the model's name, which precedes it."""
    return " ".join(str(error).removeprefix(f"{name} ").removeprefix("needs a key: ").split())


def _gpus() -> list[str]:
    """Name and memory of NVIDIA's GPUs, without torch, which takes seconds to load."""
    command = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    with suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True).stdout
        return [" ".join(line.split()) for line in listed.splitlines() if line.strip()]
    return []
