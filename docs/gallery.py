"""Draw the gallery's first figure from its run: `python -m docs.gallery RUN` writes it to `docs/figures/`.

`gallery.md` names the run and the command that made it. The figure is taken from the run's report, as `parley report`
draws it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from PIL import Image

from parley.analysis.reporting.figures import save
from parley.reports import make_report

OUT = Path(__file__).parent / "figures"
PICTURE = OUT / "gallery-pairs.png"


def shrink(picture: Path) -> None:
    """Keep only 256 colours: much smaller, and no visible change."""
    Image.open(picture).convert("RGB").quantize(256).save(picture, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the figure of the gallery.")
    parser.add_argument("run", type=Path, help="the run file that docs/gallery.md names")
    figures = {figure.name: figure for figure in make_report([parser.parse_args().run]).figures}
    save(figures["matrix"].draw(), PICTURE, ["png"])
    shrink(PICTURE)
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
