"""The example that ships with the package: unpacked in Parley's home, marked as one, never among the user's runs."""

from __future__ import annotations

import hashlib
import json
import shlex
from importlib.resources import files
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from parley.base.errors import ParleyError
from parley.runs import RunFile, example
from parley.runs.diagnosis import find_damage
from parley.viewer.open_run import OpenRun
from parley.viewer.reporter import Reporter
from parley.viewer.server import make_app


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    return example.example_runs()


def test_the_example_is_small_and_has_two_sound_real_runs(runs):
    packed = files("parley.runs").joinpath("examples")
    assert sum(len(part.read_bytes()) for part in packed.iterdir()) <= 1_500_000
    assert list(runs) == ["silent", "talking"]
    rounds = {}
    for name, path in runs.items():
        assert find_damage(path) is None
        with RunFile.open(path) as file:
            assert not any(model.startswith("sim/") for model in file.info()["models"])
            assert file.counts()["done"] > 100
            rounds[name] = file.rows("SELECT max(round) FROM messages")[1][0][0]
    assert rounds["talking"] > rounds["silent"], "judges hear each other in one of them"


def test_a_copy_that_was_changed_is_replaced(runs):
    path = runs["talking"]
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    assert path.stat().st_mode & 0o222 == 0, "nobody adds to it by mistake"
    path.unlink()
    path.write_bytes(b"something else")
    assert hashlib.sha256(example.example_runs()["talking"].read_bytes()).hexdigest() == before


def test_a_damaged_installation_says_so(tmp_path):
    with pytest.raises(ParleyError, match="is damaged: install Parley again"):
        example._unpack(b"not xz", tmp_path / "silent.sqlite", "0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_the_report_of_the_example_says_that_it_is_one(parley, place, runs):
    result = parley("report", "--example", "--no-files", "--draws", "50")
    assert result.status == 0, result.err
    assert result.out.lstrip().startswith("Example that ships with Parley: malibu")
    assert [path.name for path in place.iterdir()] == ["home"], "nothing is written among one's own files"
    assert "leave out" in parley("report", "--example", "a.sqlite").complaints[0]
    # The price comes from the tokens of this run: no unit is planned for it.
    command = next(line for line in result.out.splitlines() if line.startswith("  parley run malibu"))
    price = float(result.out.partition("costs about $")[2].split()[0])
    planned = parley(*shlex.split(command)[1:], "--dry-run", "--json").json
    assert price == pytest.approx(planned["cost"], rel=0.25)


def test_the_examples_first_page_is_there_at_once_and_says_what_the_report_says(runs, monkeypatch):
    monkeypatch.setattr(Reporter, "request", lambda *arguments, **options: None)  # nothing is computed
    run = OpenRun(runs["silent"])
    found = run.headline(Reporter())
    assert {picture["name"] for picture in found["figures"]} == run.pictures().keys()
    golden = json.loads((Path(__file__).parents[1] / "golden" / "results" / "example.json").read_text("utf-8"))
    numbers, sentences = golden["numbers"]["report · headline"], golden["sentences"]
    now = "the report has changed: python -m docs.example"
    assert found["headline"]["answer"] == numbers["answer"], now
    assert [*found["cautions"], *found["sentences"]] == sentences["report · summary"], now
    assert OpenRun(runs["talking"]).headline(Reporter())["pending"], "a report takes seconds"


async def test_every_page_of_the_example_has_a_banner_and_others_have_none(runs, tmp_path):
    for folder, banners in ((runs["silent"].parent, 1), (tmp_path, 0)):
        async with TestClient(TestServer(make_app(folder))) as client:
            for page in ("/", "/run?run=silent.sqlite", "/compare"):
                text = await (await client.get(page)).text()
                assert text.count(example.MARK) == banners


def test_without_runs_the_viewer_offers_the_example(parley, place):
    assert "parley view --example" in parley("view").complaints[0]
