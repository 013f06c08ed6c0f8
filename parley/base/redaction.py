"""Hides addresses in outputs to be shared: reports, exported pages, datasets, logs and stored errors.

A host may be private. Models keep their names; the run file keeps the addresses for resuming.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from parley.base.address import is_loopback

_URL = re.compile(r"\b(https?)://[^\s\"'<>()]*[^\s\"'<>():;,.!?]", re.IGNORECASE)
_VALUE = r"[^&\s\"',)]+"
_OPTION = re.compile(rf"[?&][^=&?\s]+=(https?(?:://|%3A%2F%2F){_VALUE})", re.IGNORECASE)
_NETWORK_ERROR = re.compile(r"((?:connect to host|call failed) )(?:\([^)]{0,99}\)|\S*[^\s,;:])", re.IGNORECASE)
"""Hosts and resolved addresses in messages of aiohttp and asyncio."""
_IPV4 = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b(?::\d+)?")


def hide_in_error(text: str) -> str:
    """An error message with the model's name, but only the scheme of addresses: `http://…`."""
    hosts = _host_pattern(match[0] for match in _URL.finditer(text))
    text = _NETWORK_ERROR.sub(r"\1…", _URL.sub(r"\1://…", text))
    return _IPV4.sub("…", hosts.sub("…", text) if hosts else text)


class HiddenAddresses:
    """Hides a run's addresses in outputs: `server/m?base_url=http://gpu:8000/v1` → `…?base_url=…`.

    Different addresses stay different: the second is `base_url=…2`, so that models and units are not mixed up.

    Args:
        info: Data with addresses: a run's config and models.
    """

    def __init__(self, info: Any) -> None:
        addresses = dict.fromkeys(address for text in _strings(info) for address in _OPTION.findall(text))
        # Numbered and not hashed: the hash of a host name or an IP address can be guessed.
        self._numbers = {address: number for number, address in enumerate(addresses, 1)}
        # A known address may be part of a longer text, such as a unit's id; the end of an unknown one is guessed.
        longest_first = sorted(map(re.escape, addresses), key=len, reverse=True)
        self._option = re.compile(
            rf"([?&][^=&?\s]+=)({'|'.join(longest_first) or '(?!)'})|(\bbase_url=)({_VALUE})", re.IGNORECASE
        )
        self._hosts = _host_pattern(unquote(address) for address in addresses)

    def hide(self, value: Any) -> Any:
        """The value (a text, or lists and dicts of texts) without addresses. `error` and `detail` are messages."""
        if isinstance(value, str):
            return self._hide_text(value)
        if value is None or isinstance(value, int | float):
            return value
        if isinstance(value, Mapping):
            return {self.hide(key): self._hide_entry(key, inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide(inner) for inner in value]
        return value

    def hide_in_error(self, text: str) -> str:
        """`hide_in_error`, also for the run's hosts, which some messages have without a scheme."""
        return self._hide_text(hide_in_error(text))

    def _hide_entry(self, key: Any, value: Any) -> Any:
        if isinstance(value, str) and key == "base_url":
            return "…"
        if isinstance(value, str) and key in ("error", "detail"):
            return self.hide_in_error(value)
        return self.hide(value)

    def _hide_text(self, text: str) -> str:
        if "=" in text:
            text = self._option.sub(self._mark, text)
        return self._hosts.sub("…", text) if self._hosts else text

    def _mark(self, match: re.Match[str]) -> str:
        option, address = match[1] or match[3], match[2] or match[4]
        if address.startswith("…"):  # hidden before
            return match[0]
        number = self._numbers.setdefault(address, len(self._numbers) + 1)
        return f"{option}…{number if number > 1 else ''}"


def _host_pattern(addresses: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern for these addresses and their hosts; one-word hosts only in unambiguous places."""
    alternatives = set()
    for address in addresses:
        try:
            parts = urlsplit(address)
            host = parts.hostname
        except ValueError:
            continue
        if not host or host == "…" or is_loopback(address):  # "…": hidden before
            continue
        alternatives.add(re.escape(address))
        end = r"(?::\d+)?(?![\w-])"
        if "." in host or ":" in host:
            alternatives.add(rf"(?<![\w.-])\[?{re.escape(host)}\]?{end}")
        else:
            before = "|".join(f"(?<={prefix})" for prefix in ("//", "'", '"', "host ", "duckduckgo "))
            alternatives |= {rf"(?:{before}){re.escape(host)}{end}", rf"(?<![\w.-]){re.escape(host)}:\d+"}
    return re.compile("|".join(sorted(alternatives, key=len, reverse=True)), re.IGNORECASE) if alternatives else None


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _strings([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)
