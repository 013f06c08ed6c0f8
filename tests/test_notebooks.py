"""Every notebook runs from top to bottom, and is stored with small outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient
from traitlets.config import Config

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run(path: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In this process: kernels take seconds to start."""
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}), ipython_dir=str(place / "ipython"))
    for cell in code_cells(nbformat.read(path, as_version=4)):
        capsys.readouterr()
        shell.run_cell(cell.source).raise_error()
        assert capsys.readouterr().out, f"a cell shows nothing:\n{cell.source}"


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[] if path.stem == "own_team" else pytest.mark.nightly) for path in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_a_notebook_runs_in_a_kernel(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert all(cell.outputs for cell in code_cells(notebook)), "every code cell shows something"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_with_its_outputs(path: Path) -> None:
    """They are small, have no errors, and do not show the folder or the machine they were made on."""
    stored = [cell.outputs for cell in code_cells(nbformat.read(path, as_version=4))]
    assert all(stored), "run it: python -m docs.run_notebooks"
    assert [output for cell in stored for output in cell if output.output_type == "error"] == []
    assert path.stat().st_size < 100_000
    assert "/tmp/" not in path.read_text("utf-8")
