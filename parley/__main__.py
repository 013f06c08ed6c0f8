"""`python -m parley` is `parley`."""

import sys
from importlib.metadata import distributions
from pathlib import Path

from parley.base.home import say
from parley.cli import main


def installed_elsewhere() -> Path | None:
    """Another installed Parley: `python -m` prefers the current folder, and processes that this one starts do not."""
    here = Path(__file__).parent
    places = (Path(str(installed.locate_file("parley"))) for installed in distributions(name="parley-autogen"))
    return next((place for place in places if (place / "cli").is_dir() and not place.samefile(here)), None)


if __name__ == "__main__":
    if place := installed_elsewhere():
        say(f"this is the Parley in {Path(__file__).parent}, not the installed one in {place}: type parley for that")
    sys.exit(main())
