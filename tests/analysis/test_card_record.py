"""A card as JSON: what is written is read again, the published schema is the code's, and a wrong file is one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parley.analysis.card.record import SCHEMA_FILE, Card, read_card, schema_text, write_card
from parley.analysis.stats.results import ALIKE, DIFFERENT, NOT_MEASURED, ON_AVERAGE, SMALL, UNDECIDED
from parley.base.errors import ConfigError
from tests.cards import around, card, line


def example(**changes: object) -> dict[str, object]:
    """A card of one line, as it is stored."""
    stored = json.loads(card("sim/judge", line("gender", around(0.0))).model_dump_json(by_alias=True))
    stored["lines"][0] |= changes
    return dict(stored)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    card = Card.model_validate(example())
    write_card(card, tmp_path / "card.json")
    assert read_card(tmp_path / "card.json") == card
    assert json.loads((tmp_path / "card.json").read_text())["schema"] == 1


@pytest.mark.parametrize(
    ("stored", "because", "verdict", "note"),
    [
        ("shown", "the scores were not shown to", DIFFERENT, "the scores were not shown to"),
        ("small", None, ALIKE, ""),
        ("small", "it differs, but by less than the margin", SMALL, ""),
        ("not shown", None, UNDECIDED, ""),
        ("not shown", "small on average, but bases may differ (SD up to 0.3)", ON_AVERAGE, "small on average, but "),
        ("blocked", "all scores are the same", NOT_MEASURED, "all scores are the same"),
    ],
)
def test_a_stored_verdict_is_translated_and_written_as_it_was(
    tmp_path: Path, stored: str, because: str | None, verdict: str, note: str
) -> None:
    card = Card.model_validate(example(verdict=stored, because=because))
    assert (card.lines[0].verdict, card.lines[0].note[: len(note)]) == (verdict, note)
    write_card(card, tmp_path / "card.json")
    line = json.loads((tmp_path / "card.json").read_text())["lines"][0]
    assert (line["verdict"], line["because"]) == (stored, because)


@pytest.mark.parametrize("path", sorted(SCHEMA_FILE.with_name("shipped").glob("*.json")), ids=lambda path: path.stem)
def test_the_lines_of_published_cards_are_written_as_they_were(tmp_path: Path, path: Path) -> None:
    write_card(read_card(path), tmp_path / "card.json")
    again, published = (json.loads(each.read_text("utf-8")) for each in (tmp_path / "card.json", path))
    assert again["lines"] == published["lines"]


def test_the_published_schema_is_that_of_the_code() -> None:
    assert SCHEMA_FILE.read_text("utf-8") == schema_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", r"is not a judge's card: schema: Field required|battery: Field required"),
        ("no", "is not a judge's card: Invalid JSON"),
        (json.dumps({**example(), "grade": "A"}), "grade: Extra inputs are not permitted"),
    ],
)
def test_a_file_that_is_no_card_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "card.json").write_text(text)
    with pytest.raises(ConfigError, match=message) as error:
        read_card(tmp_path / "card.json")
    assert "\n" not in str(error.value)
