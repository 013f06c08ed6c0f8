"""The part of the release check that needs no network; `python -m docs.release` does the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.release import NotReady, version_and_changelog


def test_the_changelog_begins_with_this_version(root: Path) -> None:
    assert version_and_changelog(root)


def test_a_version_that_is_not_in_the_changelog_is_not_released(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.1.0\n\nThe first version.\n")
    with pytest.raises(NotReady, match=r"0\.2\.0"):
        version_and_changelog(tmp_path)
