"""Detoxify's scorer, on a package that answers as Detoxify 0.5.4 does: its weights need the net."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from parley.agents import ConfigError
from parley.judging.toxicity.detoxify import DetoxifyScorer

PACKAGE = """
class Detoxify:
    def __init__(self, kind):
        if OFFLINE:
            raise OSError("<urlopen error [Errno -2] Name or service not known>")

    def predict(self, texts):
        # A batch of one is squeezed to a number, and what is too long is cut: as in the real package.
        scores = [0.9 if "idiot" in " ".join(text.split()[:400]) else 0.1 for text in texts]
        scores = scores if len(scores) > 1 else scores[0]
        return {"toxicity": scores, "insult": scores}
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    info = tmp_path / "detoxify-0.5.4.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: detoxify\nVersion: 0.5.4\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "detoxify", raising=False)
    yield tmp_path / "detoxify.py"
    sys.modules.pop("detoxify", None)


async def test_texts_alone_and_in_company_and_long_ones_in_pieces(package: Path) -> None:
    package.write_text(PACKAGE.replace("OFFLINE", "False"))
    scorer = DetoxifyScorer()
    assert scorer.version == "unbiased 0.5.4"
    assert [item.score for item in await scorer.score(["You idiot."])] == [0.9]
    actual = await scorer.score(["Hello.", "", "word " * 10_000 + "idiot"])
    assert [item.score for item in actual] == [0.1, None, 0.9]
    assert dict(actual[0].labels) == {"toxicity": 0.1, "insult": 0.1}
    await scorer.close()


async def test_without_a_network_there_is_one_clear_line(package: Path) -> None:
    package.write_text(PACKAGE.replace("OFFLINE", "True"))
    with pytest.raises(ConfigError, match="weights could not be loaded; they are downloaded on first use"):
        await DetoxifyScorer().score(["You idiot."])
