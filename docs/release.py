"""The release check: `python -m docs.release`. It stops at the first thing that is not right, and says which.

Versions and changelog agree, the tree is clean, wheel and source package are built and hold every file beside our
modules, and what is installed from it in a fresh environment runs a study on a simulated model and writes its report.
Fetches packages; takes a few minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


class NotReady(Exception):
    """Something that must be mended before a release."""


def check(fine: bool, wrong: str) -> None:
    if not fine:
        raise NotReady(wrong)


def call(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    check(
        done.returncode == 0, f"{' '.join(map(str, command[-6:]))} ended with {done.returncode}: {done.stderr[-800:]}"
    )
    return done.stdout


def version_and_changelog(root: Path = ROOT) -> str:
    version = str(tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"])
    headings = re.findall(r"^## (\S+)", (root / "CHANGELOG.md").read_text("utf-8"), re.M)
    check(bool(headings) and headings[0] == version, f"the changelog begins with {headings[:1]}, and this is {version}")
    return version


def clean_tree() -> None:
    changed = call("git", "status", "--porcelain").splitlines()
    check(not changed, f"{len(changed)} files are not committed: {', '.join(changed[:3])}")


def data_files(root: Path = ROOT) -> set[str]:
    """What must travel with the modules: every tracked file of our rooms."""
    rooms = ("agents", "scenarios", "judging", "analysis", "training", "parley")
    return {name for name in call("git", "ls-files", *rooms, cwd=root).splitlines() if name}


def built(folder: Path, version: str) -> Path:
    """Wheel and source package, with everything in them; gives the wheel."""
    call(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ".")
    backend = "import setuptools.build_meta as backend, sys; print(backend.build_sdist(sys.argv[1]))"
    tools = folder / "tools"
    call(sys.executable, "-m", "pip", "install", "-q", "--target", tools, "setuptools>=77")
    call(sys.executable, "-c", backend, folder, PYTHONPATH=str(tools))
    (wheel,) = folder.glob(f"parley_autogen-{version}-*.whl")
    missing = data_files() - set(zipfile.ZipFile(wheel).namelist())
    check(not missing, f"not in the wheel: {', '.join(sorted(missing)[:5])}")
    with tarfile.open(folder / f"parley_autogen-{version}.tar.gz") as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    missing = (data_files() | {"README.md", "LICENSE", "pyproject.toml"}) - inside
    check(not missing, f"not in the source package: {', '.join(sorted(missing)[:5])}")
    return wheel


def installed(wheel: Path, folder: Path, version: str) -> None:
    """A fresh environment, far from the checkout, runs a study and writes its report."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    place = folder / "place"
    place.mkdir()
    wanted = ("-c", ROOT / "constraints.txt", f"{wheel}[analysis]")
    call(python, "-m", "pip", "install", "-q", *wanted, cwd=place, PYTHONPATH="")

    def parley(*words: str) -> str:
        return call(python, "-m", "parley", *words, cwd=place, PARLEY_HOME=str(place / "home"), PYTHONPATH="")

    said = parley("--version").strip()
    check(said == f"parley {version}", f"the installed command says {said}")
    quick = ("run", "malibu", "--suite", "quick", "--model", "sim/judge?female=+0.5", "--out", "a.sqlite", "--json")
    result = json.loads(parley(*quick))
    check(result["done"] == result["units"] > 0, f"the quick run is not complete: {result}")
    parley("report", "a.sqlite")
    check((place / "a-report" / "report.html").is_file(), "the report was not written")


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    try:
        version = version_and_changelog()
        print(f"version {version}: pyproject and changelog agree", flush=True)
        clean_tree()
        print("everything is committed", flush=True)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            wheel = built(folder, version)
            print(f"{wheel.name} and its source package hold all {len(data_files())} files", flush=True)
            installed(wheel, folder, version)
            print("installed in a fresh environment, it runs a study and writes its report")
    except NotReady as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(f"{version} can be released")
    return 0


if __name__ == "__main__":
    sys.exit(main())
