"""`parley models`: lists models, what each still needs and costs; `parley models fetch NAME` downloads one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from pydantic import Field

from parley.agents.models.catalogue import catalogue, is_fetched, weights_path
from parley.agents.models.prices import Listed, price_list
from parley.agents.models.registry import client_class
from parley.agents.models.servers import OwnServerClient
from parley.agents.providers import PROVIDERS, Provider
from parley.base.errors import ConfigError
from parley.cli.command import Answer, Command
from parley.cli.doctor import missing_extra
from parley.cli.flags import Positional
from parley.cli.progress import fetch_with_bar
from parley.cli.tables import cell_table


class Models(Command):
    """List models, what each still needs and what it costs, or download an embedded one."""

    action: Positional[Literal["list", "fetch"]] = Field("list", description="list all models, or download one")
    name: Positional[str | None] = Field(None, description="with fetch: the embedded model to download")

    def answer(self) -> Answer:
        if self.action == "list":
            rows = _rows()
            return Answer(rows, _tables(rows))
        name, names = (self.name or "").rpartition("/")[2], ", ".join(catalogue())
        if not name:
            raise ConfigError(f"name the model to download: {names}")
        if name not in catalogue():
            raise ConfigError(f"no model '{name}' can be downloaded; choose one of {names}")
        fetch_with_bar(name)
        path = weights_path(name)
        return Answer({"model": name, "weights": path}, [f"{name} is downloaded: {path}"])


def _tables(rows: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    examples = {provider.example for provider in PROVIDERS.values()}
    shown = [row for row in rows if "price" not in row or row["name"] in examples]
    cells = [[row[key] for key in ("name", "about", "ready")] for row in shown]
    yield cell_table(("model", "about", "ready"), cells, left=3, whole="ready")
    yield from _prices(price_list())


def _rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {
            "name": f"local/{name}",
            "about": f"{entry.about} ({entry.size / 1e6:.0f} MB, {entry.licence})",
            "ready": "yes"
            if is_fetched(name)
            else "downloaded on first use"
            if entry.automatic
            else f"parley models fetch {name}",
        }
        for name, entry in catalogue().items()
    ]
    prices = price_list()
    for prefix, provider in PROVIDERS.items():
        ready = _ready(provider)
        listed = [name for name in prices if name.startswith(f"{prefix}/")]
        for name in dict.fromkeys([provider.example or "?", *listed]):
            if name != "local/smollm2":
                row = {"name": name, "about": provider.about, "ready": ready}
                rows.append(row | ({"price": _as_json(prices[name])} if name in prices else {}))
    return rows


def _as_json(entry: Listed) -> dict[str, Any]:
    """The prices and their sources, in one table."""
    rates = asdict(entry.price)
    return rates | {key: value for key, value in asdict(entry).items() if key != "price"}


def _ready(provider: Provider) -> str:
    if missing := missing_extra(provider.extra):
        return missing
    if provider.key and not os.environ.get(provider.key):
        return f"set {provider.key}"
    if provider.key or provider.in_process or not provider.target.startswith("."):  # loads no third-party package
        return "yes"
    return "where its server runs" if issubclass(client_class(provider.example), OwnServerClient) else "yes"


def _prices(prices: Mapping[str, Listed]) -> Iterator[Any]:
    """The known prices, with a number for each source, and the sources below."""
    sources = list(dict.fromkeys(entry.source for entry in prices.values()))
    rows = []
    for name, entry in prices.items():
        amounts = (entry.price.prompt, entry.price.cached, entry.price.completion)
        cells = ("–" if amount is None else f"{amount:.4g}" for amount in amounts)
        rows.append((name, *cells, f"[{sources.index(entry.source) + 1}]"))
    yield cell_table(("price of", "in", "cached", "out", "source"), rows, whole="price of")
    looked_up = max(entry.looked_up for entry in prices.values())
    yield f"US dollars per million tokens, looked up {looked_up}; thinking is billed as output; – means unknown."
    for name, entry in prices.items():
        if entry.until:
            yield f"{name}: this price is valid until {entry.until}"
        if entry.ends:
            yield f"{name} ends {entry.ends}; its vendor recommends {entry.use}"
    for number, source in enumerate(sources, 1):
        dated = next(entry.dated for entry in prices.values() if entry.source == source)
        yield f"[{number}] {source}" + (f" ({dated})" if dated else "")
