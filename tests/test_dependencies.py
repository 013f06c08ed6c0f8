"""Dependencies: accepted licences, and errors that name a missing extra."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from tests.dependencies import bare, licences

ROOT = Path(__file__).parents[1]


def test_every_package_has_an_accepted_licence_and_stands_on_the_page() -> None:
    listed = licences.read_page()
    packages, _ = licences.installed_packages()
    assert {"pydantic", "aiohttp", "autogen-core"} <= {package.name for package in packages}
    assert [f"{package.name}: '{package.licence}'" for package in packages if not package.accepted] == []
    wrong = [package.name for package in packages if listed.get(package.name, package.licence) != package.licence]
    assert wrong == [], "python -m tests.dependencies.licences --write"
    extras = licences.requirements_by_extra().values()
    required = {canonicalize_name(requirement.name) for requirements in extras for requirement in requirements}
    assert sorted(required - set(listed)) == [], "also those that are not installed on this platform"


@pytest.mark.parametrize(
    ("licence", "accepted"),
    [("MIT", True), ("MIT AND PSF-2.0", True), ("GPL-3.0 OR MIT", True), ("MIT AND GPL-3.0", False), ("", False),
     ("GPL-3.0-only", False), ("Proprietary", False), ("Apache-2.0 OR BSD-3-Clause", True)],
)  # fmt: skip
def test_all_parts_of_a_licence_expression_count(licence: str, accepted: bool) -> None:
    assert licences.Package("x", "1", licence, ("core",)).accepted is accepted


@pytest.fixture(scope="module")
def bare_results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The result of each command in a process where no extra is installed."""
    folder = tmp_path_factory.mktemp("bare")
    done = subprocess.run(
        [sys.executable, "-m", "tests.dependencies.bare", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {result["command"]: result for result in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.parametrize(
    ("extra", "command"), bare.COMMANDS, ids=[f"{extra}: {' '.join(command[:2])}" for extra, command in bare.COMMANDS]
)
def test_the_error_names_the_missing_extra(
    bare_results: dict[str, dict[str, Any]], extra: str, command: tuple[str, ...]
) -> None:
    result = bare_results[" ".join(command)]
    assert result["status"] == 2, result
    assert f"pip install '.[{extra}]'" in result["error"]
    assert result["error"].count("\n") == 1, result["error"]


def test_every_extra_with_a_command_is_tested() -> None:
    """`openai` is for Python, `notebooks`, `docs` and `dev` are for working on Parley."""
    others = {"openai", "notebooks", "docs", "dev", "core"}
    assert {extra for extra, _ in bare.COMMANDS} | others == set(licences.requirements_by_extra())
