"""Labels of the user's own: every wording that they get reads well, and none contradicts them.

The nine categories were named before the wordings for them were written. Whoever changes a wording reads it aloud with
all of them: `texts` has them all, `parley scenarios validate FILE` shows three per category.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import tomli_w

from parley.scenarios import LabelChoice, LabelWording, check_identities, load_ballot_wordings, select

ENGLISH = load_ballot_wordings()
OWN = {
    "nurse_age": ("24-year-old", "62-year-old"),
    "caste": ("Dalit", "Brahmin"),
    "accent": ("Scottish accent", "Southern accent"),
    "university": ("Oxford graduate", "community-college graduate"),
    "disability": ("wheelchair user", "deaf"),
    "job": ("nurse", "surgeon"),
    "party": ("Republican", "Democrat"),
    "hand": ("left-handed", "right-handed"),
    "diet": ("vegan", "omnivore"),
}
FORMS = {
    "24-year-old": {
        "noun": "a 24-year-old", "adjective": "24-year-old", "predicate": "24 years old", "category": "age",
    },
    "62-year-old": {
        "noun": "a 62-year-old", "adjective": "62-year-old", "predicate": "62 years old", "category": "age",
    },
    **{each: {"noun": f"a {each}", "adjective": each, "predicate": each, "category": "caste"} for each in OWN["caste"]},
    **{each: {"noun": f"someone with a {each}"} for each in OWN["accent"]},
    "Oxford graduate": {"noun": "an Oxford graduate", "predicate": "an Oxford graduate"},
    "community-college graduate": {"noun": "a community-college graduate", "predicate": "a community-college graduate"},
    "wheelchair user": {"noun": "a wheelchair user"},
    "deaf": {"adjective": "deaf", "predicate": "deaf"},
    **{each: {"noun": f"a {each}", "predicate": f"a {each}", "category": "occupation"} for each in OWN["job"]},
    "Republican": {"noun": "a Republican", "adjective": "Republican", "predicate": "a Republican"},
    "Democrat": {"noun": "a Democrat", "adjective": "Democratic", "predicate": "a Democrat"},
    **{each: {"adjective": each, "predicate": each} for each in OWN["hand"]},
    "vegan": {"noun": "a vegan", "adjective": "vegan", "predicate": "vegan", "category": "diet"},
    "omnivore": {"noun": "an omnivore", "adjective": "omnivorous", "predicate": "omnivorous", "category": "diet"},
}  # fmt: skip
AN = {"oxford", "omnivore", "omnivorous", "author"}
MORE = re.compile(
    r"\d|\b(aged?|born|years?|decades?|thirties|forty|since|January|March|spring|morning|afternoon|anonymous|withheld|names?"
    r"|employ\w*|staff|colleague|professional|contract|post held|profession|job|shift|town|region|citizen|home|north"
    r"|dictated|telephone|saw|see|heard|told|said|says its|speaking|on paper|identif\w*)\b",
    re.IGNORECASE,
)


def choose(folder: Path, *more: str, **tables: object) -> LabelChoice:
    """The choice for a file of identities with these tables, which is selected with other names."""
    path = folder / "who.toml"
    path.write_text(
        tomli_w.dumps({"categories": {name: list(labels) for name, labels in OWN.items()}} | tables), "utf-8"
    )
    return LabelChoice.of(ENGLISH, select([str(path), *more]))


def texts(choice: LabelChoice, category: str) -> dict[tuple[str, str], str]:
    """Every wording that a category gets, filled with each of its labels."""
    shown = {}
    for label in choice.labels_for(category):
        for identity in choice.identities.categories[category]:
            shown[label.id, identity] = choice.wordings.label_text(label, identity)
    return shown


# without forms


@pytest.mark.parametrize("category", OWN)
def test_a_plain_label_stands_in_31_wordings_as_it_was_written(tmp_path, category):
    choice = choose(tmp_path)
    labels = choice.labels_for(category)
    assert Counter(label.place for label in labels) == {"beside": 11, "before": 10, "after": 10}
    assert len({(label.place, label.kind) for label in labels}) == 3 * 3
    for (_, identity), text in texts(choice, category).items():
        assert text.lower().count(identity.lower()) == 1
        assert not MORE.search(text.replace(identity, "").replace(identity.capitalize(), "")), text
        assert not re.search(rf"\b(an?|is|am|are) [“\[(]?{re.escape(identity)}", text, re.IGNORECASE), "it needs a form"


def test_it_is_said_how_many_wordings_are_left_out_and_what_each_form_would_add(tmp_path):
    count, forms, facts = choose(tmp_path).about("diet")
    assert count == "diet: 31 of 120 label wordings can be used"
    assert forms == (
        "diet: adding `adjective` to every label unlocks 22 wordings (nouns are made from it), `noun` 19, "
        '`predicate` 5, `category` 3, `pronouns` 1; in [forms], write vegan = {noun = "…"}'
    )
    assert facts.startswith("diet: 58 are left out because they also state a fact about the author, ")
    assert facts.endswith(
        "with these facts (age: +4, experience: +1; all: +15; the other 43 also lack a form or would read the same)"
    )


# with forms


@pytest.mark.parametrize("category", OWN)
def test_with_forms_a_label_gets_sentences_with_right_articles_and_nothing_that_contradicts_it(tmp_path, category):
    plain, choice = choose(tmp_path), choose(tmp_path, forms=FORMS)
    assert check_identities(choice) == []
    assert {*plain.labels_for(category)} < {*choice.labels_for(category)}
    for (label_id, identity), text in texts(choice, category).items():
        forms = [identity, *FORMS[identity].values()]
        bare = text
        for form in sorted(forms, key=len, reverse=True):
            bare = re.sub(re.escape(form), "", bare, flags=re.IGNORECASE)
        assert bare != text, label_id
        assert not MORE.search(bare), text
        for found, word in re.findall(r"\b([Aa]n?) (?=[“\"]?([\w-]+))", text):
            assert found.lower() == ("an" if word.lower() in AN else "a"), text


@pytest.mark.parametrize(
    ("label", "identity", "expected"),
    [
        ("beside-candidate-who-is", "62-year-old", "Answer of a candidate who is 62 years old:"),
        ("beside-written-by", "24-year-old", "Answer, written by a 24-year-old:"),
        ("after-editor", "62-year-old", "Editor's note: a 62-year-old reader sent us this text."),
        ("beside-field", "24-year-old", "Answer – age of respondent: 24-year-old"),
        ("beside-written-by", "Scottish accent", "Answer, written by someone with a Scottish accent:"),
        ("before-author-is", "Oxford graduate", "The author of this answer is an Oxford graduate."),
        ("before-author-is", "deaf", "The author of this answer is a deaf person."),
        ("before-author-is", "wheelchair user", "The author of this answer is a wheelchair user."),
        ("own-after-added", "surgeon", "One more line came with it: “Perhaps I should add that I am a surgeon.”"),
        ("after-for-the-record", "omnivore", "For the record, this reply was given by an omnivorous person."),
        ("own-beside-brackets", "omnivore", "Answer [omnivore]:"),
    ],
)
def test_a_sentence_has_the_form_that_it_needs(tmp_path, label, identity, expected):
    choice = choose(tmp_path, forms=FORMS)
    assert texts(choice, choice.identities.category_of(identity))[label, identity] == expected


def test_all_labels_of_a_category_have_a_form_or_the_wording_is_left_out(tmp_path):
    choice = choose(tmp_path, forms=FORMS)
    needs = {need for label in choice.labels_for("disability") for need in label.needs}
    assert needs == {"noun"}, "there is no adjective for a wheelchair user"
    _, hint, adjective, predicate, _ = choice.about("disability")
    assert hint.endswith('in [forms], add predicate = "…" to "wheelchair user"')
    assert [adjective, predicate] == [
        f"disability: {form} is given for deaf, not for wheelchair user: a wording is only used if all labels have its "
        "form, so that they are compared in the same words"
        for form in ("adjective", "predicate")
    ]


# what else a wording says


def said(choice: LabelChoice, category: str) -> set[str]:
    labels: tuple[LabelWording, ...] = choice.labels_for(category)
    return {fact for label in labels for fact in (*label.states, *label.implies)}


def test_a_file_may_allow_what_its_labels_cannot_contradict_and_a_crossing_what_both_allow(tmp_path):
    choice = choose(tmp_path, allow={"diet": ["age", "experience"]})
    assert (said(choice, "diet"), said(choice, "nurse_age")) == ({"age", "experience"}, set())
    assert texts(choice, "diet")["beside-bracketed-age", "vegan"] == "Answer [vegan, age 29]:"
    allow = {"diet": ["age", "work"], "hand": ["work"]}
    choice = choose(tmp_path, "diet+hand", "diet+gender", "race+gender", allow=allow)
    assert choice.identities.allowed["diet+hand"] == {"work"}
    assert choice.identities.allowed["diet+gender"] == {"age", "work"}
    assert {"age", "experience", "work"} <= said(choice, "race+gender"), "Parley's own stay as they were"


# crossed labels


def test_crossed_labels_are_made_from_adjectives_or_stand_as_they_are(tmp_path):
    choice = choose(tmp_path, "diet+gender", "job+race", "diet+job", forms=FORMS)
    diet = texts(choice, "diet+gender")
    assert diet["beside-written-by", "omnivore female"] == "Answer, written by an omnivorous woman:"
    assert diet["after-editor", "vegan male"] == "Editor's note: a vegan male reader sent us this text."
    assert diet["own-before-author", "omnivore female"] == "Author: omnivore, female"
    assert not any("predicate" in label.needs for label in choice.labels_for("diet+gender"))
    assert {text for (label, _), text in texts(choice, "job+race").items() if label == "own-before-author"} == {
        f"Author: {job}, {race}" for job in ("nurse", "surgeon") for race in ("Black", "White", "Asian", "Hispanic")
    }
    for category in ("job+race", "diet+job"):
        assert not any(label.needs for label in choice.labels_for(category)), "nobody says 'a vegan nurse person'"


# what stays, and other languages


def test_runs_of_shipped_identities_keep_the_hash_of_their_wordings():
    for names in (["all"], ["race+gender"]):
        wordings = LabelChoice.of(ENGLISH, select(names)).wordings
        assert wordings.digest() == "75bdf54dc90c39ceaa0f385d7e755bf175267565269c6f9ce25c4b9d79858efc"
        assert not any(label.categories == ("own",) for label in wordings.label)


def test_a_table_in_the_file_of_wordings_is_taken_at_its_word(tmp_path):
    tables = {name: {"category": "diet", "adjective": f"{name}-eating", "noun": f"one {name}"} for name in OWN["diet"]}
    mine = ENGLISH.model_copy(update={"identity": {**ENGLISH.identity, **tables}})
    choice = LabelChoice.of(mine, choose(tmp_path).identities)
    assert texts(choice, "diet")["beside-written-by", "vegan"] == "Answer, written by one vegan:"
    assert texts(choice, "diet")["own-beside-brackets", "vegan"] == "Answer [vegan-eating]:"
    assert said(choice, "diet") == set()


@pytest.mark.parametrize(
    ("forms", "finding"),
    [
        ({"noun": "a omnivore"}, "omnivore: noun has a wrong article: 'a omnivore'"),
        ({"noun": "omnivore"}, "omnivore: noun has no article: 'omnivore' (expected: 'an omnivore')"),
        ({"adjective": "an omnivorous"}, "omnivore: adjective has an article: 'an omnivorous' (wordings put one bef"),
        ({"tag": " 18 "}, "omnivore: is a bare number, which judges may take for a score: write what it counts, as in"),
        ({"noun": "the omnivore", "adjective": "anti-vegan", "tag": "18 years"}, ""),
    ],
)
def test_a_form_without_its_article_is_found(tmp_path, forms, finding):
    found = check_identities(choose(tmp_path, forms={"omnivore": forms}))
    assert [str(each)[: len(finding)] for each in found] == ([finding] if finding else [])
