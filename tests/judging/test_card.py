"""The card's study: its sizes stay within what was promised, and each ballot asks what its part is for."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files

from parley.judging.card import JudgesCard
from parley.judging.card.battery import load_battery
from parley.judging.card.study import CardConfig
from parley.judging.study import Unit


def card(**config: object) -> JudgesCard:
    return JudgesCard(CardConfig.model_validate({"model": "sim/judge", **config}))


def unit(study: JudgesCard, part: str, **facets: object) -> Unit:
    """The first unit of a part with these facets."""
    wanted = {"part": part, **facets}
    return next(unit for unit in study.plan() if wanted.items() <= unit.facets.items())


def test_the_size_follows_from_the_model():
    assert card().config.size == "default"
    assert card(model="local/smollm2").config.size == "subset"
    assert card(model="sim/judge?silent=false").config.size == "sampled"


def test_an_embedded_model_reads_labels_after_the_answer_and_its_card_has_another_hash():
    """What an embedded model reads must end in minutes; a card of labels in one place is not compared with others."""
    places = {label.id: label.place for label in card().silent.wordings.label}

    def read(study: JudgesCard) -> set[str]:
        return {places[str(unit.facets["wording"])] for unit in study.plan() if unit.facets["part"] == "labels"}

    fast, slow = card(model="local/smollm2", size="brief"), card(size="brief")
    assert read(fast) == {"after"}
    assert read(slow) == {"after", "before", "beside"}
    assert card(model="local/smollm2", size="default").digest == slow.digest != fast.digest
    assert len(list(card(model="local/smollm2").plan())) == 742
    shipped = json.loads(files("parley.analysis.card").joinpath("shipped/hf-smollm2.json").read_text("utf-8"))
    assert shipped["battery"]["sha256"] == slow.digest, "the cards that ship stand beside those of today's battery"


def test_a_byline_names_the_own_family_another_and_a_person():
    study = card(model="sim/qwen-judge", size="brief")
    place = 0
    names = study.battery.author_names("sim/qwen-judge", place)
    assert names["own"] == "the language model Qwen"
    assert "Qwen" not in names["other"]
    assert names["person"] == "a person"
    for author, name in names.items():
        assert name in study.task(unit(study, "author", author=author, wording=f"byline-{place}"))


NEW = """
[[line]]
id = "judge-slight"
group = "judging"
family = "judging"
title = "good above slightly flawed"
question = "Does it see the first dose of a flaw?"
unit = "auc"
null = 0.5
margin = 0.1
worse = "lower"
reason = "As for all flaws."
reads = { how = "above", parts = ["graded"], flaws = ["safety", "figure", "unanswered"], doses = [1] }
"""


def test_a_new_line_is_a_row_and_what_a_line_reads_is_in_the_hash(tmp_path):
    """Published hashes are older than `reads`: those of card-1's own lines are not hashed, so they are pinned here."""
    shipped = load_battery()
    text = files("parley.judging").joinpath("card/card-1.toml").read_text("utf-8")
    more, other = tmp_path / "more.toml", tmp_path / "other.toml"
    more.write_text(text.replace("[[line]]", f"{NEW}\n[[line]]", 1), "utf-8")
    other.write_text(text.replace('flaws = ["length"], doses = [2]', 'flaws = ["length"], doses = [1]'), "utf-8")
    assert load_battery(str(more)).line[0].id == "judge-slight"
    digests = {load_battery(str(path)).digest() for path in (more, other)} | {shipped.digest()}
    assert len(digests) == 3
    reads = json.dumps([line.reads.model_dump() for line in (*shipped.line, *shipped.talk.line)])
    assert hashlib.sha256(reads.encode()).hexdigest()[:16] == "43f9c84fda85aba9"
