"""What is wrong is said in one line, before anything is trained; no torch is needed to hear it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.agents import ConfigError
from parley.training.base import base_folder

Planted = Callable[..., Path]


@pytest.fixture(autouse=True)
def _begin_in_an_empty_place(place: Path) -> None:
    """See `place`."""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "name the pairs to train on: --data FOLDER (of `parley export RUN --format trl`)"),
        ('data = "nowhere"', "there is no dataset at nowhere"),
        ('data = "x"\n[rl]\nalgoritm = "rloo"', "unknown key 'rl.algoritm' (known: algorithm, topics_from, epochs,"),
        ('data = "x"\nbasis = "y"', "unknown key 'basis' (known: base, data, out,"),
        ('data = "x"\n[rl]\ntemperature = 0', "rl.temperature: Input should be greater than 0, not 0"),
        ('data = "x"\nrl = 3', "rldf.toml: [rl] is a table"),
    ],
)
def test_a_config_that_does_not_fit(place: Path, parley: Callable[..., Any], text: str, complaint: str) -> None:
    (place / "rldf.toml").write_text(text)
    told = parley("train", "all", "--config", "rldf.toml")
    assert told.status == 2
    assert len(told.complaints) == 1
    assert complaint in told.complaints[0]
    assert not (place / "trained").exists()


def test_stages_that_need_something_first_say_so(place: Path, parley: Callable[..., Any], planted: Planted) -> None:
    data = str(planted(100))
    few = parley("train", "sft", "--data", data)
    assert "76 pairs to train on are too few (least_pairs is 100; the paper asks for 5,000)" in few.complaints[0]
    for stage, complaint in (
        ("evaluate", "nothing to evaluate by: set evaluate.bbq"),
        ("rlaif", "RLAIF needs a model that labels: set rlaif.labeller"),
        ("ablate", "nothing to ablate: set ablate.pairs"),
    ):
        told = parley("train", stage, "--data", data)
        assert told.status == 2
        assert complaint in told.complaints[0]
    told = parley("train", "evaluate", "--data", data, "--evaluate-judges", "sim/judge")
    assert "there is no finished model at trained/sft: parley train sft" in told.complaints[0]
    labelled = parley("train", "rlaif", "--data", data, "--rlaif-labeller", "sim/any")
    assert "there is no finished sft stage at trained/sft: parley train sft" in labelled.complaints[0]


def test_packages_that_are_missing_are_named(parley: Callable[..., Any], planted: Planted) -> None:
    try:
        import trl  # noqa: F401
    except ModuleNotFoundError:
        told = parley("train", "sft", "--data", planted(200))
        assert told.status == 2
        assert (
            "training needs torch, transformers, trl and peft: pip install 'parley-autogen[training]'"
            in told.complaints[0]
        )
    else:
        pytest.skip("they are installed here")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("local/nowhere/model.gguf", "there is no folder nowhere/model.gguf to train from"),
        ("./empty", "empty is no folder of transformers': it has no config.json"),
    ],
)
def test_a_base_that_is_not_there(place: Path, name: str, complaint: str) -> None:
    (place / "empty").mkdir()
    with pytest.raises(ConfigError, match=complaint):
        base_folder(name)
