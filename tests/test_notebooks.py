"""Every notebook runs from top to bottom, and is stored with small outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def outputs(notebook: Any) -> list[Any]:
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert all(outputs(notebook)), "every code cell shows something"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_with_its_outputs(path: Path) -> None:
    """They are small, have no errors, and do not show the folder or the machine they were made on."""
    stored = outputs(nbformat.read(path, as_version=4))
    assert all(stored), "run it: python -m docs.run_notebooks"
    assert [output for cell in stored for output in cell if output.output_type == "error"] == []
    assert path.stat().st_size < 100_000
    assert "/tmp/" not in path.read_text("utf-8")
