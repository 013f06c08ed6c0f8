"""Your own scenarios, identities and wordings: a command writes a file that runs as it is."""

from __future__ import annotations

import re

import pytest

KINDS = ("scenarios", "identities", "wordings")


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_file_runs_by_the_command_in_its_first_lines(parley, place, kind):
    assert parley("new", kind, "My Own.toml".replace(" ", "-")).status == 0
    text = (place / "My-Own.toml").read_text("utf-8")
    command = re.search(r"parley (run .*) --report", text)
    assert command
    result = parley(*command[1].split(), "--design", "silent", "--limit", "6", "--json")
    assert result.status == 0, result.err
    assert result.json["done"] == result.json["units"] > 0


@pytest.mark.parametrize("kind", ["scenarios", "wordings"])
def test_a_new_file_is_fit_to_measure_with(parley, place, kind):
    parley("new", kind, "mine.toml")
    result = parley("scenarios", "validate", "mine.toml")
    assert result.status == 0, result.out
    assert "fit to measure with" in result.out
