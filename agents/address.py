"""The addresses that models, scorers and search services are asked at, and where a key may be sent.

An address is written into runs, reports and error lines, so nothing secret may stand in it; and a key never goes
over the network in the clear unless the user says that it may.
"""

from __future__ import annotations

import os
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from parley.agents.errors import ConfigError

INSECURE = "send the key over plain http to another machine: for networks you trust"
WAY_OUT = ", or write ?insecure=true where you trust the network"


def plain_address(url: str) -> str:
    """The address without the slash at its end; ValueError, which never quotes a secret, if it is none."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise ValueError("it is not an address like https://host:port/v1") from None
    if "@" in (parts.netloc or url):
        raise ValueError("it must not hold a user or password: keys come from the environment")
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError(f"'{url.partition('?')[0]}' must begin with http:// or https:// and a host")
    if parts.query or parts.fragment:
        raise ValueError("it must end before a ? or #: keys come from the environment")
    return url.rstrip("/")


BaseUrl = Annotated[str, AfterValidator(plain_address)]
"""An option that holds an address."""


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_in_the_clear(name: str, url: str, way_out: str = "") -> None:
    """A key goes over https, or stays on this machine."""
    if url.startswith("http://") and not is_loopback(url):
        host = urlsplit(url).hostname
        raise ConfigError(f"{name}: the key would go to {host} unencrypted; use https://{way_out}")


def from_environment(name: str, variable: str | None) -> str | None:
    """The address that a variable holds, checked like one that was typed."""
    url = os.environ.get(variable) if variable else None
    try:
        return plain_address(url) if url else None
    except ValueError as error:
        raise ConfigError(f"{name}: {variable}: {error}") from None
