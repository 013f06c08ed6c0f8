"""Faults in names and files of this room; each text is one line for the user."""


class ScenarioError(ValueError):
    """A scenario file or name that cannot be used."""


class UnknownName(ScenarioError):
    """A suite or identity that does not exist."""
