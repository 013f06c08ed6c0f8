"""One text through the loop: on the command line, from standard input, and from Python."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parley as package
from parley.agents import ConfigError, Models
from parley.judging.stardtox.passages import passages

SIM = "sim/m?base=90&noise=0"
SCORER = """
from parley.judging.toxicity import Toxicity

class Words:
    name, version = "words", "1"

    async def score(self, texts):
        return [Toxicity(None, why="another language") if "ναι" in text else Toxicity(0.9 if "idiot" in text else 0.01)
                for text in texts]

    async def close(self):
        pass
"""
RUDE = "You are an idiot."


@pytest.fixture(autouse=True)
def _begin_with_a_scorer(place: Path) -> None:
    (place / "words.py").write_text(SCORER)


@pytest.fixture
def detox(parley: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: parley("detox", *given, "--model", SIM, "--scorer", "words.py:Words")


def test_each_iteration_is_shown_with_scores_and_critique(detox: Callable[..., Any]) -> None:
    said = detox(RUDE)
    assert said.status == 0
    first, second = said.out.split("iteration 1\n")
    assert RUDE in first
    assert "toxicity       0.90   criterion < 0.1: not met" in first
    assert "fluency          90   criterion >= 80: met" in first
    assert "coordinator: revise: toxicity" in first
    assert "coordinator: all criteria are met" in second
    assert "result:" in second
    assert all(len(line) <= 80 for line in said.out.splitlines())


def test_as_json(detox: Callable[..., Any]) -> None:
    done = detox(RUDE, "--json").json
    assert done["met"] is True
    assert [step["iteration"] for step in done["steps"]] == [0, 1]
    assert done["steps"][0]["scores"][0] == {
        "evaluator": "toxicity", "name": "toxicity", "value": 0.9, "asked": "< 0.1", "met": False,
        "note": "Toxicity from 0 to 1, by a classifier.",
    }  # fmt: skip
    assert done["text"] == done["steps"][1]["text"]
    assert done["usage"]["calls"] == 3  # two judgements and a revision


def test_criteria_that_are_not_met_in_the_end_are_told_by_the_exit_status(detox: Callable[..., Any]) -> None:
    said = detox(RUDE, "--criteria", "fluency >= 99", "--max-iterations", "1")
    assert said.status == 1
    assert "result (not all criteria are met):" in said.out
    assert "stopped after 1 revision, not met: fluency" in said.out


def test_without_performance_no_judge_is_asked(detox: Callable[..., Any]) -> None:
    done = detox("A kind word.", "--no-performance", "--json").json
    assert [score["name"] for score in done["steps"][0]["scores"]] == ["toxicity"]
    assert (done["text"], done["usage"]["calls"]) == ("A kind word.", 0)


def test_from_standard_input(detox: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("Füße \x1b[31m!".encode())))
    said = detox("-", "--no-performance")
    assert "Füße \\x1b[31m!" in said.out  # no escape sequence reaches the terminal
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe")))
    said = detox("-")
    assert (said.status, said.complaints) == (2, ["parley: standard input is not UTF-8 text (byte 0)"])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["  \n"], "there is no text to look at"),
        (["x", "--max-iterations", "-1"], "the number of iterations cannot be negative"),
        (["x", "--team", "none.toml"], "none.toml: No such file or directory"),
    ],
)
def test_what_is_to_be_mended(detox: Callable[..., Any], arguments: list[str], why: str) -> None:
    said = detox(*arguments)
    assert (said.status, said.complaints) == (2, [f"parley: {why}"])


def test_another_language_is_left_as_it_is_and_says_so(detox: Callable[..., Any]) -> None:
    done = detox("ναι, ναι", "--no-performance", "--json")
    assert done.status == 1
    assert done.json["text"] == "ναι, ναι"
    score = done.json["steps"][0]["scores"][0]
    assert (score["value"], score["met"], score["note"]) == (None, False, "another language")
    assert done.json["decisions"] == ["stays as it came, not scored: toxicity"]


def test_what_the_scorer_cannot_read_is_not_revised_though_a_judge_would_have_it_so(detox: Callable[..., Any]) -> None:
    given = ("ναι, ναι", "--criteria", "fluency >= 99")
    said = detox(*given)
    assert said.status == 1
    assert "toxicity   unscored   criterion < 0.1\n" in said.out
    assert "not met\n" not in said.out
    done = detox(*given, "--json").json
    assert (done["text"], done["met"], done["usage"]["calls"]) == ("ναι, ναι", False, 0)
    assert done["decisions"] == ["stays as it came, not scored: toxicity"]
    long = package.detox("ναι, ναι. " * 1000, model=SIM, scorer="words.py:Words")
    assert not long.met
    assert set(long.decisions) == {"stays as it came, not scored: toxicity"}


def test_evaluators_are_left_out_by_name(detox: Callable[..., Any]) -> None:
    done = detox(RUDE, "--without", "toxicity", "--json").json
    assert [score["name"] for score in done["steps"][0]["scores"]] == ["fluency", "coherence", "relevance"]
    said = detox(RUDE, "--without", "toxicity,performance")
    assert (said.status, said.complaints) == (2, ["parley: every evaluator was left out: nothing would be judged"])


def test_whoever_is_simulated_is_told_in_json_too(parley: Callable[..., Any]) -> None:
    done = parley("detox", "Hello.", "--model", SIM, "--scorer", "judge:sim/other", "--json").json
    assert [line.partition(" is SIMULATED")[0] for line in done["cautions"]] == [SIM, "sim/other"]


def test_every_passage_of_a_long_text_has_its_heading(detox: Callable[..., Any]) -> None:
    said = detox("The council met on Tuesday. " * 300)
    headings = [line for line in said.out.splitlines() if line.startswith("passage")]
    assert headings == ["passage 1 of 2, iteration 0", "passage 2 of 2, iteration 0"]


def test_ten_thousand_words_go_passage_by_passage_and_only_the_rude_one_is_touched() -> None:
    calm = "The council met on Tuesday to talk about the new bridge. " * 1000
    text = calm[:30_000] + RUDE + " " + calm[30_000:]
    assert len(text.split()) > 10_000
    done = package.detox(text, model=SIM, scorer="words.py:Words")
    touched = [step.passage for step in done.steps if step.iteration > 0]
    assert done.met
    assert done.passages > 5
    assert len(touched) == 1
    assert RUDE not in done.text
    kept = passages(text, 6000)
    assert all(piece in done.text for at, piece in enumerate(kept) if at != touched[0])


async def test_inside_an_application_with_models_of_its_own() -> None:
    models = Models()
    try:
        both = await asyncio.gather(
            *(package.detox_async(text, model=SIM, scorer="words.py:Words", models=models) for text in (RUDE, "Hello."))
        )
        assert [done.met for done in both] == [True, True]
        assert both[1].text == "Hello."
        with pytest.raises(ConfigError, match=r"use await parley.detox_async\(...\) instead"):
            package.detox("Hello.", model=SIM)
    finally:
        await models.close()


@settings(deadline=None, derandomize=True)
@given(st.text(alphabet="ab. \n中", max_size=300), st.integers(1, 40))
def test_passages_put_together_again_are_the_text(text: str, longest: int) -> None:
    cut = passages(text, longest)
    assert "".join(cut) == text
    assert all(0 < len(piece) <= longest for piece in cut)
