"""Checks for the optional packages that a command needs."""

from __future__ import annotations

from parley.agents import ConfigError


def need_analysis() -> None:
    """Raise an error if the extra `analysis` is not installed."""
    try:
        import pandas  # noqa: F401
        import scipy  # noqa: F401
    except ModuleNotFoundError:
        raise ConfigError("this command needs the extra 'analysis': pip install 'parley-autogen[analysis]'") from None
