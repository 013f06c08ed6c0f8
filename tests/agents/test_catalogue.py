"""Fetching weights: real pip, real wheels, an index that is a folder, and nothing kept that is not the file."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from parley.agents import ConfigError, ParleyError
from parley.agents.home import home
from parley.agents.models.catalogue import CatalogueEntry, Wheels, catalogue, fetch, is_fetched, weights_path

WEIGHTS = b"GGUF" + bytes(range(256)) * 40


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty index for pip, and an empty home for us."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def publish(index: Path, package: str, member: str, content: bytes) -> None:
    """A wheel of version 1.0 that carries a file."""
    info = f"{package}-1.0.dist-info"
    with zipfile.ZipFile(index / f"{package}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{package}/__init__.py", "raise RuntimeError('never import me')\n")
        wheel.writestr(f"{package}/{member}", content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def announce(monkeypatch: pytest.MonkeyPatch, *packages: str, content: bytes = WEIGHTS, suffix: str = "") -> None:
    """The catalogue knows a model 'tiny' that these packages carry."""
    entry = CatalogueEntry(
        about="tiny",
        licence="MIT",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        can_judge=False,
        wheels=Wheels(packages=[f"{package}==1.0" for package in packages], suffix=suffix),
        order=["wheels"],
    )
    monkeypatch.setitem(catalogue(), "tiny", entry)


def left_behind() -> list[str]:
    return sorted(str(path.relative_to(home())) for path in home().rglob("*") if path.is_file())


def test_a_file_that_is_whole_in_one_wheel(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(index, "tinyweights", "tiny.gguf", WEIGHTS)
    announce(monkeypatch, "tinyweights", suffix=".gguf")
    told: list[tuple[int, int]] = []
    path = fetch("tiny", lambda done, size: told.append((done, size)))
    assert path == weights_path("tiny")
    assert path.read_bytes() == WEIGHTS
    assert told[-1] == (len(WEIGHTS), len(WEIGHTS))
    assert left_behind() == ["models/tiny.gguf"]

    # It is there now: no index is needed any more.
    (index / "tinyweights-1.0-py3-none-any.whl").unlink()
    assert is_fetched("tiny")
    assert fetch("tiny") == path


def test_a_file_in_two_parts(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(index, "tinypart1", "part.bin", WEIGHTS[:5000])
    publish(index, "tinypart2", "part.bin", WEIGHTS[5000:])
    announce(monkeypatch, "tinypart1", "tinypart2")
    assert fetch("tiny").read_bytes() == WEIGHTS
    assert left_behind() == ["models/tiny.gguf"]


def test_another_file_than_the_published_one_is_refused(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = b"GGUF" + WEIGHTS[4:][::-1]
    publish(index, "tinyweights", "tiny.gguf", changed)
    announce(monkeypatch, "tinyweights")
    with pytest.raises(ParleyError, match=r"wheels: what came is not the published file \(its hash differs\)"):
        fetch("tiny")
    assert left_behind() == []
    assert not is_fetched("tiny")


def test_nothing_found_is_one_clear_line(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announce(monkeypatch, "tinyweights")
    with pytest.raises(ParleyError) as caught:
        fetch("tiny")
    text = str(caught.value)
    assert text.startswith("the weights of tiny could not be fetched (wheels: ERROR: ")
    assert "tinyweights==1.0" in text
    assert text.endswith(f"with the file at hand, put it at {weights_path('tiny')} or name it as local/PATH")
    assert "\n" not in text
    assert left_behind() == []


def test_no_such_model() -> None:
    with pytest.raises(ConfigError, match=r"no model 'huge' in the catalogue \(it has: smollm2, "):
        fetch("huge")


def test_no_room_is_told_before_anything_is_fetched(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announce(monkeypatch, "tinyweights")
    monkeypatch.setitem(catalogue(), "tiny", catalogue()["tiny"].model_copy(update={"size": 10**18}))
    with pytest.raises(ParleyError, match="MB free, and the model takes 1000000000000 MB"):
        fetch("tiny")


def test_a_wheel_without_the_file_is_one_clear_line(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(index, "tinyweights", "readme.txt", b"moved")
    announce(monkeypatch, "tinyweights", suffix=".gguf")
    with pytest.raises(ParleyError, match="could not be fetched"):
        fetch("tiny")
