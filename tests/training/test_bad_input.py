"""Wrong input is refused with one line, before anything is trained and without torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.agents import ConfigError
from parley.training.base_model import base_folder

Planted = Callable[..., Path]


@pytest.fixture(autouse=True)
def _start_in_an_empty_folder(place: Path) -> None:
    """See `place`."""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "name the pairs to train on: --set data=FOLDER (of `parley export RUN --format trl`)"),
        ('data = "nowhere"', "there is no dataset at nowhere"),
        ('data = "x"\n[rl]\nalgoritm = "rloo"', "unknown key 'rl.algoritm' (did you mean 'rl.algorithm'?)"),
        ('data = "x"\nbasis = "y"', "unknown key 'basis' (did you mean 'base'?)"),
        ('data = "x"\n[rl]\ntemperature = 0', "rl.temperature must be above 0, got 0"),
        ('data = "x"\nrl = 3', "rl is a table: [rl] in a config, --set rl.KEY=VALUE on the command line"),
    ],
)
def test_a_config_that_does_not_fit(place: Path, parley: Callable[..., Any], text: str, complaint: str) -> None:
    (place / "rldf.toml").write_text(text)
    result = parley("train", "all", "--config", "rldf.toml")
    assert result.status == 2
    assert len(result.complaints) == 1
    assert complaint in result.complaints[0]
    assert not (place / "trained").exists()


def test_stages_that_need_something_first_say_so(place: Path, parley: Callable[..., Any], planted: Planted) -> None:
    data = str(planted(100))
    few = parley("train", "sft", "--set", f"data={data}")
    assert "too few pairs to train on: 76 (min_pairs is 100; the paper asks for 5,000)" in few.complaints[0]
    for stage, complaint in (
        ("evaluate", "nothing to evaluate: set evaluate.bbq"),
        ("rlaif", "RLAIF needs a model that labels pairs: set rlaif.labeller"),
        ("ablate", "nothing to ablate: set ablate.pairs"),
    ):
        result = parley("train", stage, "--set", f"data={data}")
        assert result.status == 2
        assert complaint in result.complaints[0]
    evaluated = parley("train", "evaluate", "--set", f"data={data}", "--set", 'evaluate.judges=["sim/judge"]')
    assert "there is no finished model at trained/sft: run `parley train sft`" in evaluated.complaints[0]
    labelled = parley("train", "rlaif", "--set", f"data={data}", "--set", "rlaif.labeller=sim/any")
    assert "there is no finished sft stage at trained/sft: run `parley train sft`" in labelled.complaints[0]


def test_packages_that_are_missing_are_named(parley: Callable[..., Any], planted: Planted) -> None:
    try:
        import trl  # noqa: F401
    except ModuleNotFoundError:
        result = parley("train", "sft", "--set", f"data={planted(200)}")
        assert result.status == 2
        assert (
            "training needs torch, transformers, trl and peft: pip install 'parley-autogen[training]'"
            in result.complaints[0]
        )
    else:
        pytest.skip("they are installed")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("local/nowhere/model.gguf", "there is no folder nowhere/model.gguf to train from"),
        ("./empty", "empty is not a transformers model folder: it has no config.json"),
    ],
)
def test_a_base_that_is_not_there(place: Path, name: str, complaint: str) -> None:
    (place / "empty").mkdir()
    with pytest.raises(ConfigError, match=complaint):
        base_folder(name)


def test_a_model_that_needs_its_own_code_is_refused(place: Path) -> None:
    pytest.importorskip("transformers")
    from parley.training.base_model import refuse_remote_code

    config = place / "config.json"
    config.write_text('{"model_type": "own_kind", "auto_map": {"AutoConfig": "configuration.OwnConfig"}}')
    with pytest.raises(ConfigError, match="needs Python code from its own repository"):
        refuse_remote_code(str(place))
    config.write_text('{"model_type": "llama", "auto_map": {"AutoConfig": "configuration.OwnConfig"}}')
    refuse_remote_code(str(place))  # transformers has its own code for it
