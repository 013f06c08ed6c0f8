"""`python -m docs.gallery` draws the gallery's first figure from the run that ships with Parley."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from parley.analysis.page.figures import save
from parley.reports import make_report
from parley.runs.example import example_runs

OUT = Path(__file__).parent / "figures"
PICTURE = OUT / "gallery-pairs.png"


def shrink(picture: Path) -> None:
    """Keep only 256 colours: much smaller, and no visible change."""
    Image.open(picture).convert("RGB").quantize(256).save(picture, optimize=True)


def main() -> None:
    figures = {figure.name: figure for figure in make_report([example_runs()["silent"]]).figures}
    save(figures["matrix"].draw(), PICTURE, ["png"])
    shrink(PICTURE)
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
