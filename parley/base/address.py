"""Base URLs of models, scorers and search services, the proxies to them, and the rule for where a key may be sent.

A base URL is stored in the run file, so it must contain no secret. A key is never sent over plain http to another
machine unless the user allows it. Shared outputs contain no addresses: see `redaction`.
"""

from __future__ import annotations

import os
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import AfterValidator

from parley.base.errors import ConfigError

INSECURE = "send the key over plain http to another machine: for networks you trust"
"""Help text of the option `insecure`."""
INSECURE_HINT = ", or write ?insecure=true where you trust the network"


def plain_address(url: str) -> str:
    """The URL without a trailing slash; ValueError if invalid, with a message that never quotes a secret."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("it is not an address like https://host:port/v1, with a port up to 65535") from None
    if "@" in (parts.netloc or url):
        raise ValueError("it must not contain a user or password; keys come from the environment")
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError(f"'{url.partition('?')[0]}' must begin with http:// or https:// and a host")
    if parts.query or parts.fragment:
        raise ValueError("it must not contain ? or #; keys come from the environment")
    if port == 0:
        raise ValueError("a port is a number from 1 to 65535")
    return url.rstrip("/")


BaseUrl = Annotated[str, AfterValidator(plain_address)]
"""The type of an option that is a base URL."""


def is_loopback(url: str) -> bool:
    """Whether the URL's host is this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def without_password(address: str) -> str:
    """The address of a proxy without its user and password, which may contain any character."""
    scheme, separator, rest = address.partition("://")
    if not separator:
        scheme, rest = "", address
    return f"{scheme}{separator}…@{rest.rpartition('@')[2]}" if "@" in rest else address


def proxy_for(url: str) -> str | None:
    """The environment's proxy for an address: HTTPS_PROXY or HTTP_PROXY, else ALL_PROXY, unless NO_PROXY excludes it;
    ConfigError if its kind is not supported."""
    address = urlsplit(url)
    # A proxy cannot reach a server on this machine; most users forget to exclude it.
    if is_loopback(url) or proxy_bypass(address.netloc.rpartition("@")[2]):
        return None
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if not proxy:
        return None
    scheme, separator, _ = proxy.partition("://")
    if separator and scheme.lower() != "http":
        # Calls that bypass the proxy may fail, or go where they should not.
        raise ConfigError(
            f"the proxy for {address.hostname} is {without_password(proxy)}, and only proxies that begin with http:// "
            f"are supported; set {address.scheme.upper()}_PROXY to one of those, or name the host in NO_PROXY"
        )
    return proxy if separator else f"http://{proxy}"


def require_https(name: str, url: str, hint: str = "") -> None:
    """ConfigError if a key would be sent over plain http to another machine."""
    if url.startswith("http://") and not is_loopback(url):
        host = urlsplit(url).hostname
        raise ConfigError(f"{name}: the key would go to {host} unencrypted; use https://{hint}")


def from_environment(name: str, variable: str | None) -> str | None:
    """The base URL in an environment variable, validated like one from an option; None if it is not set."""
    url = os.environ.get(variable) if variable else None
    try:
        return plain_address(url) if url else None
    except ValueError as error:
        raise ConfigError(f"{name}: {variable}: {error}") from None
