"""Errors in names and files of scenarios; each message is one line for the user."""


class ScenarioError(ValueError):
    """A scenario file or name that cannot be used."""


class UnknownName(ScenarioError):
    """A suite or identity that does not exist."""
