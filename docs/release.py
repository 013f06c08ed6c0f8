"""The release check: `python -m docs.release`. It stops at the first problem and names it.

It checks that version and changelog agree, that the suite's responses do not give themselves away, that the tree is
clean, that wheel and source package contain every file of our packages, and that the wheel, installed in a fresh
environment, runs a study on a simulated model and writes its report. It downloads packages and takes a few minutes.
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

from docs.giveaways import tell_apart
from parley.scenarios import SHIPPED, load_suite

ROOT = Path(__file__).parents[1]


class NotReady(Exception):
    """Something that must be fixed before a release."""


def check(passed: bool, problem: str) -> None:
    if not passed:
        raise NotReady(problem)


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
    check(
        bool(headings) and headings[0] == version,
        f"the changelog begins with {headings[:1]}, but the version is {version}",
    )
    return version


def fit_suite() -> str:
    giveaways = tell_apart(load_suite(SHIPPED)[0])
    check(not giveaways.found, f"the responses of {SHIPPED} give themselves away: {giveaways}")
    return str(giveaways)


def clean_tree() -> None:
    changed = call("git", "status", "--porcelain").splitlines()
    check(not changed, f"uncommitted files: {len(changed)}, such as {', '.join(changed[:3])}")


def package_files(root: Path = ROOT) -> set[str]:
    """The tracked files of our packages, without the links such as parley/agents."""
    folders = ("agents", "scenarios", "judging", "analysis", "training", "parley")
    names = call("git", "ls-files", *folders, cwd=root).splitlines()
    return {name for name in names if not (root / name).is_symlink()}


def build_packages(folder: Path, version: str) -> Path:
    """Build wheel and source package, check that they are complete, and return the wheel."""
    call(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ".")
    backend = "import setuptools.build_meta as backend, sys; print(backend.build_sdist(sys.argv[1]))"
    tools = folder / "tools"
    call(sys.executable, "-m", "pip", "install", "-q", "--target", tools, "setuptools>=77")
    call(sys.executable, "-c", backend, folder, PYTHONPATH=str(tools))
    (wheel,) = folder.glob(f"parley_autogen-{version}-*.whl")
    installed = {name if name.startswith("parley/") else f"parley/{name}" for name in package_files()}
    missing = installed - set(zipfile.ZipFile(wheel).namelist())
    check(not missing, f"not in the wheel: {', '.join(sorted(missing)[:5])}")
    with tarfile.open(folder / f"parley_autogen-{version}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = (package_files() | {"README.md", "LICENSE", "pyproject.toml"}) - names
    check(not missing, f"not in the source package: {', '.join(sorted(missing)[:5])}")
    return wheel


def try_wheel(wheel: Path, folder: Path, version: str) -> None:
    """Install the wheel in a fresh environment outside the checkout, run a study and write its report."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    work = folder / "work"
    work.mkdir()
    packages = ("-c", ROOT / "constraints.txt", f"{wheel}[analysis]")
    call(python, "-m", "pip", "install", "-q", *packages, cwd=work, PYTHONPATH="")

    def parley(*words: str) -> str:
        return call(python, "-m", "parley", *words, cwd=work, PARLEY_HOME=str(work / "home"), PYTHONPATH="")

    output = parley("--version").strip()
    check(output == f"parley {version}", f"the installed command prints {output}")
    quick = ("run", "malibu", "--suite", "tiny", "--model", "sim/judge?female=+0.5", "--out", "a.sqlite", "--json")
    result = json.loads(parley(*quick))
    check(result["done"] == result["units"] > 0, f"the quick run is not complete: {result}")
    parley("report", "a.sqlite")
    check((work / "a-report" / "report.html").is_file(), "the report was not written")


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    try:
        version = version_and_changelog()
        print(f"version {version}: pyproject and changelog agree", flush=True)
        print(f"{SHIPPED}: {fit_suite()}", flush=True)
        clean_tree()
        print("everything is committed", flush=True)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            wheel = build_packages(folder, version)
            print(f"{wheel.name} and its source package contain all {len(package_files())} files", flush=True)
            try_wheel(wheel, folder, version)
            print("the wheel, installed in a fresh environment, runs a study and writes its report")
    except NotReady as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(f"{version} can be released")
    return 0


if __name__ == "__main__":
    sys.exit(main())
