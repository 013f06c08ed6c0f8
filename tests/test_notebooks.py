"""Every notebook runs from top to bottom, and is stored with small outputs that have the same numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient
from traitlets.config import Config

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


TIMES = re.compile(r"\d[\d.:]*\s?(?:s|ms|min|seconds|minutes)\b|\d{4}-\d\d-\d\d|0x[0-9a-f]+")


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def numbers(text: str) -> list[str]:
    """The numbers of an output, but for times."""
    return re.findall(r"[−-]?\d+(?:[.,]\d+)*", TIMES.sub("", text))


def stored_text(cell: Any) -> str:
    return "".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run_and_give_the_stored_numbers(
    path: Path, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """In this process, since kernels take seconds to start; tables are as wide as in a kernel. They run twice too."""
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}), ipython_dir=str(place / "ipython"))
    cells = code_cells(nbformat.read(path, as_version=4))
    for nth, cell in enumerate(2 * cells):
        capfd.readouterr()
        with pd.option_context("display.max_columns", 20):
            shell.run_cell(cell.source).raise_error()
        shown = re.sub(r"Out\[\d+\]:", "", capfd.readouterr().out)
        assert shown, f"a cell shows nothing:\n{cell.source}"
        if nth < len(cells):
            assert numbers(stored_text(cell)) == numbers(shown), "run it: python -m docs.run_notebooks"


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
