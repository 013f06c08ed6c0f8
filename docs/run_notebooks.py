"""Run every notebook from top to bottom and keep its outputs: `python -m docs.run_notebooks`.

Each runs in an empty folder with an empty home, as in the tests, so that no output depends on what lies about.
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


def run(path: Path, place: str) -> Any:
    notebook = v4.reads(path.read_text("utf-8"))  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": place}}).execute()
    return notebook


def tidied(notebook: Any) -> Any:
    """Without what differs from run to run or says nothing: counters, progress, a second copy of each table in HTML."""
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type != "code":
            continue
        cell.execution_count = None
        cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr" and one.get("text") != "\n"]
        for output in cell.outputs:
            output.pop("execution_count", None)
            if output.output_type == "execute_result":
                output.execution_count = None
            if "data" in output:
                output.data.pop("text/html", None)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def main() -> int:
    wanted = sys.argv[1:]
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if wanted and path.stem not in wanted:
            continue
        with tempfile.TemporaryDirectory() as place:
            os.environ["PARLEY_HOME"] = str(Path(place) / "home")
            text = v4.writes(tidied(run(path, place)))  # type: ignore[no-untyped-call]
        assert place not in text, f"{path.name} shows where it was run"
        path.write_text(text + "\n", "utf-8")
        print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
