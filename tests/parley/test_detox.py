"""One text through the loop: on the command line, from standard input, and from Python."""

from __future__ import annotations

import asyncio
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parley as package
from parley.agents import ConfigError, Models
from parley.judging.stardtox.detox import CHARS_PER_TOKEN, longest_passage, passages

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
def _write_scorer(place):
    (place / "words.py").write_text(SCORER)


@pytest.fixture
def detox(parley):
    return lambda *given: parley("detox", *given, "--model", SIM, "--scorer", "words.py:Words")


def test_each_iteration_is_shown_with_scores_and_critique(detox):
    result = detox(RUDE)
    assert result.status == 0
    first, second = result.out.split("iteration 1\n")
    assert RUDE in first
    assert "toxicity       0.90   criterion < 0.1: not met" in first
    assert "fluency          90   criterion >= 80: met" in first
    assert "coordinator: revise: toxicity" in first
    assert "coordinator: all criteria are met" in second
    assert "result:" in second
    assert all(len(line) <= 80 for line in result.out.partition("result:")[0].splitlines()), (
        "the text itself is one line"
    )


def test_as_json(detox):
    output = detox(RUDE, "--json").json
    assert output["met"] is True
    assert [step["iteration"] for step in output["steps"]] == [0, 1]
    assert output["steps"][0]["scores"][0] == {
        "evaluator": "toxicity", "name": "toxicity", "value": 0.9, "asked": "< 0.1", "met": False,
        "note": "Toxicity from 0 to 1, by a classifier.",
    }  # fmt: skip
    assert output["text"] == output["steps"][1]["text"]
    assert output["usage"]["calls"] == 3  # two judgements and a revision


def test_the_exit_status_says_whether_criteria_are_met(detox):
    result = detox(RUDE, "--criteria", "fluency >= 99", "--max-iterations", "1")
    assert result.status == 1
    assert "result (not all criteria are met):" in result.out
    assert "stopped after 1 revision, not met: fluency" in result.out


def test_without_performance_no_judge_is_called(detox):
    output = detox("A kind word.", "--no-performance", "--json").json
    assert [score["name"] for score in output["steps"][0]["scores"]] == ["toxicity"]
    assert (output["text"], output["usage"]["calls"]) == ("A kind word.", 0)


def test_from_standard_input(detox, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("Füße \x1b[31m!".encode())))
    result = detox("-", "--no-performance")
    assert "Füße \\x1b[31m!" in result.out  # no escape sequence reaches the terminal
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe")))
    result = detox("-")
    assert (result.status, result.complaints) == (2, ["parley: standard input is not UTF-8 text (byte 0)"])


def test_a_text_in_another_language_is_not_revised(detox):
    output = detox("ναι, ναι", "--no-performance", "--json")
    assert output.status == 1
    assert output.json["text"] == "ναι, ναι"
    score = output.json["steps"][0]["scores"][0]
    assert (score["value"], score["met"], score["note"]) == (None, False, "another language")
    assert output.json["decisions"] == ["unchanged, not scored: toxicity"]


def test_an_unscored_text_is_not_revised_even_if_a_judge_is_not_satisfied(detox):
    given = ("ναι, ναι", "--criteria", "fluency >= 99")
    result = detox(*given)
    assert result.status == 1
    assert "toxicity   unscored   criterion < 0.1\n" in result.out
    assert "not met\n" not in result.out
    output = detox(*given, "--json").json
    assert (output["text"], output["met"], output["usage"]["calls"]) == ("ναι, ναι", False, 0)
    assert output["decisions"] == ["unchanged, not scored: toxicity"]
    long = package.detox("ναι, ναι. " * 1000, model=SIM, scorer="words.py:Words")
    assert not long.met
    assert set(long.decisions) == {"unchanged, not scored: toxicity"}


def test_evaluators_can_be_left_out_by_name(detox):
    output = detox(RUDE, "--without", "toxicity", "--json").json
    assert [score["name"] for score in output["steps"][0]["scores"]] == ["fluency", "coherence", "relevance"]
    result = detox(RUDE, "--without", "toxicity,performance")
    assert (result.status, result.complaints) == (2, ["parley: all evaluators are left out: nothing would be judged"])


def test_simulated_models_are_named_in_json(parley):
    output = parley("detox", "Hello.", "--model", SIM, "--scorer", "judge:sim/other", "--json").json
    assert [line.partition(" is SIMULATED")[0] for line in output["cautions"][:2]] == [SIM, "sim/other"]
    assert output["cautions"][2].startswith(
        "judge:sim/other has no calibration: its threshold is the paper's, toxicity < 0.1"
    )


def test_every_passage_of_a_long_text_has_a_heading(detox):
    result = detox("The council met on Tuesday. " * 300)
    headings = [line for line in result.out.splitlines() if line.startswith("passage")]
    assert headings == ["passage 1 of 2, iteration 0", "passage 2 of 2, iteration 0"]


def test_only_the_rude_passage_of_a_long_text_is_revised():
    calm = "The council met on Tuesday to talk about the new bridge. " * 1000
    text = calm[:30_000] + RUDE + " " + calm[30_000:]
    assert len(text.split()) > 10_000
    unused = package.detox(text, model=SIM, scorer="words.py:Words")
    assert (unused.text, unused.met) == (text, False), "a passage of a thousand words, revised to one sentence"
    assert unused.cautions[-1] == "a revision that refuses, or keeps next to nothing of the text, was not used"
    output = package.detox(text, model=SIM, scorer="words.py:Words", as_published=True)
    revised = [step.passage for step in output.steps if step.iteration > 0]
    assert output.met
    assert output.passages > 5
    assert len(revised) == 1
    assert RUDE not in output.text
    pieces = passages(text, 6000)
    assert all(piece in output.text for index, piece in enumerate(pieces) if index != revised[0])


async def test_inside_an_application_with_its_own_models():
    models = Models()
    try:
        both = await asyncio.gather(
            *(package.detox_async(text, model=SIM, scorer="words.py:Words", models=models) for text in (RUDE, "Hello."))
        )
        assert [output.met for output in both] == [True, True]
        assert both[1].text == "Hello."
        with pytest.raises(ConfigError, match=r"use await parley.detox_async\(...\) instead"):
            package.detox("Hello.", model=SIM)
    finally:
        await models.close()


async def test_the_last_revision_of_a_passage_still_fits_the_context(server):
    sentence = "The idiot met the council again on Tuesday to talk about it. "
    server.answer = lambda nth, body: server.reply("idiot " + "x" * (longest - 6))
    models = Models()
    client = models[server.model()]
    client.context_tokens = 2000
    longest = longest_passage(client, 3)
    result = await package.detox_async(
        sentence * 20, model=server.model(), scorer="words.py:Words", performance=False, max_iterations=3, models=models
    )
    await models.close()
    assert result.passages == len(sentence * 20) // longest + 1
    assert len(server.asked) == 3 * result.passages
    for body in server.asked:
        prompt = sum(len(message["content"]) for message in body["messages"])
        assert prompt / CHARS_PER_TOKEN + body["max_tokens"] <= client.context_tokens


def test_a_large_context_does_not_make_long_passages():
    words = "word " * 1200
    assert package.detox(words, model=SIM, scorer="words.py:Words").passages == 1
    assert package.detox(words + "more", model=SIM, scorer="words.py:Words").passages == 2


@given(st.text(alphabet="ab. \n中", max_size=300), st.integers(1, 40))
def test_passages_joined_are_the_text(text, longest):
    cut = passages(text, longest)
    assert "".join(cut) == text
    assert all(0 < len(piece) <= longest for piece in cut)
