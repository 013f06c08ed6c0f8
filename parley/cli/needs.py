"""What a command needs installed, said in one line when it is missing."""

from __future__ import annotations

from parley.agents import ConfigError


def need_analysis() -> None:
    """Refuse to go on without the extra `analysis`."""
    try:
        import pandas  # noqa: F401
    except ModuleNotFoundError:
        raise ConfigError("this needs pandas and friends: pip install 'parley-autogen[analysis]'") from None
