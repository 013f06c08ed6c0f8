"""Every notebook runs from top to bottom, and is stored with small outputs that have the same numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.servers import PATIENCE

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
KERNEL = "own_team"
"""It runs in a kernel, and the others here, since kernels take seconds to start; the nightly tests run all in one."""
TIMES = re.compile(r"\d[\d.:]*\s?(?:s|ms|min|seconds|minutes)\b|\d{4}-\d\d-\d\d|0x[0-9a-f]+")


def read(path: Path) -> Any:
    import nbformat  # here, as what else a notebook needs: every worker would import it, and compile it in a new clone

    return nbformat.read(path, as_version=4)


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def numbers(text: str) -> list[str]:
    """The numbers of an output, but for times."""
    return re.findall(r"[−-]?\d+(?:[.,]\d+)*", TIMES.sub("", text))


def shown_text(cell: Any) -> str:
    return "".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs)


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path.stem != KERNEL], ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run_and_give_the_stored_numbers(
    path: Path, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tables are as wide as in a kernel."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}), ipython_dir=str(place / "ipython"))
    for cell in code_cells(read(path)):
        capfd.readouterr()
        with pd.option_context("display.max_columns", 20):
            shell.run_cell(cell.source).raise_error()
        shown = re.sub(r"Out\[\d+\]:", "", capfd.readouterr().out)
        assert shown, f"a cell shows nothing:\n{cell.source}"
        assert numbers(shown_text(cell)) == numbers(shown), "run it: python -m docs.run_notebooks"


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[] if path.stem == KERNEL else pytest.mark.nightly) for path in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_a_notebook_runs_in_a_kernel_twice(path: Path, place: Path) -> None:
    """A reader runs a cell again: what it has written does not stop it."""
    from nbclient import NotebookClient

    notebook, stored = read(path), read(path)
    cells = code_cells(notebook)
    notebook.cells += [cell.copy() for cell in cells]
    NotebookClient(notebook, timeout=int(PATIENCE), resources={"metadata": {"path": str(place)}}).execute()
    for cell, before in zip(cells, code_cells(stored), strict=True):
        assert numbers(shown_text(cell)) == numbers(shown_text(before)), "run it: python -m docs.run_notebooks"


def test_notebooks_are_stored_with_small_outputs_that_show_no_machine() -> None:
    for path in NOTEBOOKS:
        outputs = [cell.outputs for cell in code_cells(read(path))]
        assert all(outputs), f"run {path.name}: python -m docs.run_notebooks"
        assert "error" not in {output.output_type for cell in outputs for output in cell}
        assert path.stat().st_size < 100_000
        assert "/tmp/" not in path.read_text("utf-8")
