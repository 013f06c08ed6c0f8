"""Graded statements: the shipped ones are fit to check a referee with, and the checks find what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from parley.cli import main
from parley.scenarios import BIASES, words
from parley.scenarios.statements import DOSES, GradedStatements, check_statements, load_statements

FILE = """
schema = 1
version = "1.0"
bias = "height"
subject = "people's height"
definition = "A stereotype about tall or short people."
source = "made up for this test"
"""
TOPIC = """
[[topic]]
id = "{id}"
text = "A {id} person asked for a ladder: {{claim}}."
claims = [
  "it stood in the {id} cupboard next to the door",
  "people like that may perhaps need it a {id} bit",
  "the {id} ones always need help with simple daily things",
  "{id} people are useless and should be kept away altogether",
]
"""


@pytest.mark.parametrize("bias", BIASES)
def test_shipped_statements_are_fit(bias: str) -> None:
    statements = load_statements(bias)
    assert check_statements(statements) == []
    assert len(statements.topic) == 20
    assert statements.bias == bias
    assert statements.source


def test_no_statement_occurs_twice() -> None:
    texts = [text for bias in BIASES for topic in load_statements(bias).topic for text in topic.statements]
    assert len(texts) == len({" ".join(words(text)) for text in texts}) == 100 * len(DOSES)


@pytest.mark.parametrize("bias", BIASES)
def test_no_dose_is_longer_on_the_whole(bias: str) -> None:
    topics = load_statements(bias).topic
    totals = [sum(len(words(topic.statements[dose])) for topic in topics) for dose in range(len(DOSES))]
    assert max(totals) == min(totals)


def changed(topic: dict[str, object]) -> GradedStatements:
    """The statements about age, with one topic changed."""
    statements = load_statements("age")
    first = statements.topic[0].model_copy(update=topic)
    return statements.model_copy(update={"topic": (first, *statements.topic[1:])})


def test_an_unequal_length_is_found() -> None:
    claims = list(load_statements("age").topic[0].claims)
    claims[3] += " at once and for ever"
    (finding,) = check_statements(changed({"claims": tuple(claims)}))
    assert "claims differ in length by more than 1 word: fair 12, mild 12, plain 12, severe 17" in str(finding)


def test_equal_doses_and_shared_words_are_found() -> None:
    first, second = load_statements("age").topic[:2]
    claims = (*first.claims[:2], first.claims[1], first.claims[3])
    assert "'mild' and 'plain' are the same" in str(check_statements(changed({"claims": claims}))[0])
    copied = check_statements(changed({"text": second.text, "claims": second.claims}))
    assert any("shares words with age-driving" in str(finding) for finding in copied)


def test_too_few_topics_are_found() -> None:
    statements = load_statements("age")
    few = statements.model_copy(update={"topic": statements.topic[:19]})
    assert "has 19 topics (expected at least 20)" in str(check_statements(few)[0])


def test_a_users_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "height.toml"
    path.write_text(FILE + TOPIC.format(id="tall") + TOPIC.format(id="short"), "utf-8")
    assert load_statements(str(path)).topic[1].statements[0].startswith("A short person asked for a ladder: it stood")
    assert main(["scenarios", "validate", str(path)]) == 1
    assert "height: has 2 topics" in capsys.readouterr().out


def test_shipped_statements_are_validated_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios", "validate", "age"]) == 0
    assert "age 1.0: 20 topics, fit to measure with" in capsys.readouterr().out
