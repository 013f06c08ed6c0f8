"""The wheel beside other packages: nothing of anybody's is overwritten, and folders of common names do no harm."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import urllib.request
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.servers import PATIENCE

ROOT = Path(__file__).parents[1]
TAKEN = ("agents", "analysis", "training", "scenarios", "judging")
"""Names that research repositories and other packages use for folders of their own."""
RUN = """
from parley import Critique, Debate, Persona, run
from parley.judging.malibu import report as malibu
from parley.training.config import TrainConfig
result = run("malibu", suite="tiny", yardstick="off", model="sim/judge", out="a.sqlite")
assert result.complete, result
print("ran", result.progress.done)
"""


def start(*command: object, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command that sees no checkout: other tests may have left a PYTHONPATH."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PARLEY_HOME": str(cwd / "home"), **variables}
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def call(*command: object, cwd: Path) -> str:
    done = start(*command, cwd=cwd)
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy without the links parley/agents and so on, as on Windows."""
    source = tmp_path_factory.mktemp("source")
    names = call("git", "ls-files", cwd=ROOT).splitlines()
    for name in names:
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return source


def pip(*words: object, cwd: Path) -> None:
    """Run pip without an index; it prints nothing. Warnings are errors, since pip before 26 does not print them."""
    command = (sys.executable, "-m", "pip", "-q", *words, "--no-deps", "--no-index", "--no-build-isolation")
    done = start(*command, cwd=cwd, PYTHONWARNINGS="error::UserWarning")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr[-1500:]


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "-w", folder, source, cwd=folder)
    (built,) = folder.glob("parley_autogen-*.whl")
    return built


def test_the_wheel_adds_one_package_and_its_metadata(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"parley"}
    assert len(tops) == 2
    assert "parley/py.typed" in names
    tracked = call("git", "ls-files", *TAKEN, "parley", cwd=ROOT).splitlines()
    files = {name for name in tracked if not (ROOT / name).is_symlink() and (ROOT / name).is_file()}
    inside = {name if name.startswith("parley/") else f"parley/{name}" for name in files}
    assert inside - set(names) == set(), "not in the wheel"


@pytest.fixture
def crowded(tmp_path: Path) -> Path:
    """A researcher's folder with packages of its own, which have Parley's names and must not be touched."""
    for name in TAKEN:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise RuntimeError('{name} of the user was imported')\n")
    return tmp_path


@pytest.mark.nightly
def test_a_script_runs_beside_folders_of_the_same_names(crowded: Path) -> None:
    """The script's own process and its worker find Parley's modules, not the researcher's."""
    pytest.importorskip("ray")
    again = RUN.replace('out="a.sqlite"', 'out="b.sqlite", options=Options(executor="ray", workers=1)')
    again = again.replace("Persona, run", "Options, Persona, run").replace("\n", "\n    ")
    (crowded / "workers.py").write_text(f"if __name__ == '__main__':\n    {again}")
    assert "ran 18" in call(sys.executable, "workers.py", cwd=crowded)


def test_an_uninstalled_checkout_works_on_pythonpath(crowded: Path) -> None:
    """-S leaves out the site's .pth files, and with them an editable installation."""
    site = Path(pytest.__file__).parents[1]
    code = "import parley.agents, parley.cli, sys; print(parley.agents.__file__)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=crowded, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).resolve() == ROOT / "agents" / "__init__.py"


def test_help_and_version_take_no_time() -> None:
    """What costs a second (AutoGen, pandas, torch) is not imported for them; a clock would make this test flaky."""
    heavy = ("autogen_core", "pandas", "torch", "pydantic", "rich", "aiohttp", "numpy")
    code = f"""
import contextlib, io, sys
from parley.cli import main
for words in (["--help"], ["--version"]):
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main(words)
print([name for name in {heavy!r} if name in sys.modules])
"""
    assert call(sys.executable, "-c", code, cwd=ROOT).strip() == "[]"


@pytest.mark.nightly
def test_pip_finds_versions_beside_other_frameworks_of_agents(wheel: Path, tmp_path: Path) -> None:
    """With three more pins it looked for half an hour, and uv took versions of these packages that were a year old."""
    venv.create(tmp_path / "venv", with_pip=True)
    pip = (tmp_path / "venv" / "bin" / "python", "-m", "pip", "install", "-q")
    call(*pip, "--upgrade", "pip", cwd=tmp_path)  # an old one is slower
    others = ("ag2", "openai-agents", "langgraph", "inspect-ai")
    limited = ("timeout", 900, *pip, "--dry-run", "--report", tmp_path / "report.json", "-c", ROOT / "constraints.txt")
    call(*limited, wheel, *others, cwd=tmp_path)
    found = {
        canonicalize_name(package["metadata"]["name"]): Version(package["metadata"]["version"])
        for package in json.loads((tmp_path / "report.json").read_text())["install"]
    }
    assert found["autogen-core"] >= Version("0.7.5")
    assert found["openai-agents"] >= Version("0.24")
    assert found["inspect-ai"] >= Version("0.3.285")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as it is cloned, with its links."""
    clone = tmp_path_factory.mktemp("clone")
    for name in call("git", "ls-files", cwd=ROOT).splitlines():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(ROOT / name):
            shutil.copy2(ROOT / name, clone / name, follow_symlinks=False)
    return clone


def asked_for(address: str, path: str) -> Any:
    """The viewer's answer to a request of its pages."""
    with urllib.request.urlopen(f"{address}/api/{path}", timeout=PATIENCE) as response:
        return json.load(response)


def test_the_readmes_first_block_and_the_viewer_work_in_a_clone_as_installed(wheel: Path, clone: Path) -> None:
    """As printed, but the wheel and its dependencies come from this machine, and the model is a simulated one.

    Nothing in the current folder may be imported in place of what is installed, and the clone has a `parley/`.
    """
    printed = re.findall(r"```sh\n(.*?)```", (clone / "README.md").read_text("utf-8"), re.DOTALL)
    install, first = printed[0].strip().rsplit(" && ", 1)
    assert install.startswith("python3 -m venv --upgrade-deps .venv && .venv/bin/pip install ")
    venv.create(clone / ".venv", with_pip=False)
    (library,) = (clone / ".venv" / "lib").glob("python3*/site-packages")
    (library / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip("install", "--target", library, wheel, cwd=clone)
    shutil.copytree(library / "bin", clone / ".venv" / "bin", dirs_exist_ok=True)
    script = clone / ".venv" / "bin" / "parley"
    script.write_text(f"#!{clone}/.venv/bin/python\n" + script.read_text().partition("\n")[2])
    (clone / "random.py").write_text("raise RuntimeError('code from the current folder was run')\n")
    variables = {"PARLEY_HOME": "", "XDG_CACHE_HOME": str(clone.parent / "cache")}
    done = start("sh", "-c", f"{first} --model sim/judge?female=+0.6", cwd=clone, **variables)
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
    show = printed[1].strip().splitlines()
    assert show == [".venv/bin/parley view", ".venv/bin/parley view --example"]
    environment = {**os.environ, **variables}
    environment.pop("PYTHONPATH", None)
    for command in show:
        words = [*command.split(), "--no-browser", "--port", "0"]
        with subprocess.Popen(words, cwd=clone, env=environment, stdout=subprocess.PIPE, text=True) as viewer:
            try:
                assert viewer.stdout is not None
                address = re.search(r"http://[\d.:]+", viewer.stdout.readline())
                assert address is not None
                name = asked_for(address.group(), "runs")["runs"][0]
                until = time.monotonic() + PATIENCE
                while not (page := asked_for(address.group(), f"headline?run={name}")).get("headline"):
                    assert time.monotonic() < until, page
                    time.sleep(0.2)
            finally:
                viewer.kill()
        assert page["headline"]["answer"], page
    assert not (clone / ".parley").exists()
