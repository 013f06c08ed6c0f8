"""Draw the figures of the gallery from real runs: `python -m docs.gallery FOLDER` writes them to `docs/figures/`.

FOLDER has the run files that `gallery.md` names, each with the command that made it. A figure is taken from the run's
report, as `parley report` draws it. A run or figure that is missing is named, and ends the command with status 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from PIL import Image

from parley.analysis.reporting.figures import save
from parley.reports import make_report

FIGURES = {
    "gallery-pairs": ("qwen-silent", "matrix"),
    "gallery-win-rates": ("qwen-silent", "win-rates"),
}
"""Pictures of the page, and the run and the figure of its report that each is."""
OUT = Path(__file__).parent / "figures"


def draw(folder: Path, out: Path) -> list[str]:
    """Write the pictures whose runs are in a folder; one message for each that cannot be made."""
    problems = []
    for name, (run, wanted) in FIGURES.items():
        path = folder / f"{run}.sqlite"
        if not path.is_file():
            problems.append(f"{name}: there is no run {path}")
            continue
        figures = {figure.name: figure for figure in make_report([path]).figures}
        if wanted not in figures:
            problems.append(f"{name}: the report of {path} has no figure '{wanted}' (it has: {', '.join(figures)})")
            continue
        [picture] = save(figures[wanted].draw(), out / name, ["png"])
        shrink(picture)
        print(f"{picture}: {picture.stat().st_size / 1e3:.0f} kB")
    return problems


def shrink(picture: Path) -> None:
    """Keep only 256 colours: much smaller, and no visible change."""
    Image.open(picture).convert("RGB").quantize(256).save(picture, optimize=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Draw the figures of the gallery.")
    parser.add_argument("folder", type=Path, help="the folder with the run files")
    parser.add_argument("--out", type=Path, default=OUT, help="where to write the figures (default: docs/figures)")
    parsed = parser.parse_args()
    problems = draw(parsed.folder, parsed.out)
    for line in problems:
        print(f"gallery: {line}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
