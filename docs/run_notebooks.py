"""Run every notebook from top to bottom and store its outputs: `python -m docs.run_notebooks [NAME …]`.

Each runs in an empty folder with an empty home, as in the tests, so that no output depends on other files.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from nbclient import NotebookClient
from nbformat import v4

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def run(path: Path, folder: str) -> Any:
    notebook = v4.reads(path.read_text("utf-8"))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
    return notebook


def tidied(notebook: Any) -> Any:
    """The notebook without counters, progress bars and the HTML copies of tables, which differ from run to run."""
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type != "code":
            continue
        cell.execution_count = None
        cell.outputs = [
            output for output in cell.outputs if output.get("name") != "stderr" and output.get("text") != "\n"
        ]
        for output in cell.outputs:
            output.pop("execution_count", None)
            if output.output_type == "execute_result":
                output.execution_count = None
            if "data" in output:
                output.data.pop("text/html", None)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def main() -> int:
    names = sys.argv[1:]
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PARLEY_HOME"] = str(Path(folder) / "home")
            text = v4.writes(tidied(run(path, folder)))
        assert folder not in text, f"{path.name} shows the folder it was run in"
        path.write_text(text + "\n", "utf-8")
        print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
