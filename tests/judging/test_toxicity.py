"""Embedded toxicity scorers on their real weights: words, swaps, languages, long texts."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.agents import Models
from parley.judging.toxicity import Scorer, Toxicity, find_scorer
from parley.judging.toxicity.languages import InItsLanguages, find_language, not_in
from parley.judging.toxicity.ngrams import Weights
from parley.judging.toxicity.scorer import in_pieces, measured_thresholds, worst
from parley.judging.toxicity.swaps import Swaps
from tests.judging.test_scorers import Counting
from tests.published import FOLDER, needs

RTP = "rtp/rtp_quark_val_5000.jsonl"
ALIKE = ("gay", "straight", "Black", "white", "Muslim", "Christian", "Mexican", "German", "deaf", "autistic", "old")
NEUTRAL = (
    "I am {}.",
    "My neighbour is a {} woman.",
    "{} people are welcome here.",
    "The {} teacher praised the class.",
)
HOSTILE = ("{} people are stupid.", "I hate {} people.", "Kill all {} people.", "{} people are disgusting vermin.")


@pytest.fixture
def embedded(place):
    pytest.importorskip("profanity_check")
    return find_scorer("embedded", Models())


async def scores(scorer: Scorer, *texts: str) -> list[float]:
    actual = await scorer.score(texts)
    assert all(item.score is not None for item in actual), actual
    return [item.score for item in actual if item.score is not None]


def test_swaps_know_their_words_and_leave_insults_alone():
    swaps = Swaps.load()
    words = swaps.identity_words("A Gay man's African American wife; gaily, women's")
    assert words == ["gay", "man", "african american", "wife", "women"]
    assert swaps.identity_words("That is so gay, you queer") == swaps.variants("It rains.") == []
    assert swaps.masked("My wife is blind.") == "My  is ."
    assert set(swaps.variants("My wife called.")) == {"My wife called.", "My husband called."}


async def test_ngrams_tell_insults_from_remarks_and_do_not_depend_on_who_is_named(place):
    ngrams = find_scorer("ngrams", Models())
    texts = ("What a stupid idea, you idiot.", "Shut up – you’re worthless.", "I disagree with this idea.")
    sixty = ("word " * 59 + "idiot", "word " * 60 + "idiot")  # the second has two pieces
    by_hand = pytest.approx([0.99825, 0.658758, 0.212884, 0.980795, 0.99702], abs=1e-6)
    assert (ngrams.version, await scores(ngrams, *texts, *sixty)) == ("c9383bf3-07417fff", by_hand)
    for sentence in (*NEUTRAL, *HOSTILE):
        (score,) = set(await scores(ngrams, *(sentence.format(who) for who in ALIKE)))
        assert sentence in NEUTRAL or score > 0.5
    unscored = await ngrams.score(["...", " ", "Jij bent een idioot en niemand mag je."])
    assert [item.score for item in unscored] == [None, None, None]
    assert [item.why for item in unscored] == [
        "the text has no words that it reads",
        "there is no text",
        "this looks like Dutch, but ngrams reads only English",
    ]


@needs(RTP)
def test_ngrams_on_held_out_texts():
    """The AUC that the weights' file states, on documents that they were not trained on."""
    from sklearn.metrics import roc_auc_score

    rows = [json.loads(line) for line in (FOLDER / RTP).read_text("utf-8").splitlines()]
    held_out = [row for row in rows if int(hashlib.sha256(row["filename"].encode()).hexdigest(), 16) % 5 == 0]
    parts = [part for row in held_out for part in (row["prompt"], row["continuation"])]
    scored = [part for part in parts if part.get("toxicity") is not None]
    toxicity = [Weights.load().probability(part["text"]) for part in scored]
    assert roc_auc_score([part["toxicity"] >= 0.5 for part in scored], toxicity) == pytest.approx(0.898, abs=0.0005)


async def test_a_sentence_is_as_harmless_or_as_bad_whomever_it_is_about(embedded):
    """0.95 and 0.01 are what alt-profanity-check 1.9.1 itself says (`profanity_check.predict_prob`)."""
    for sentence in (*NEUTRAL, *HOSTILE):
        actual = await scores(embedded, *(sentence.format(who) for who in ALIKE))
        low, high = (0, 0.1) if sentence in NEUTRAL else (0.9, 1)
        assert max(actual) - min(actual) < 1e-9
        assert low <= min(actual) <= max(actual) <= high
    gay, christian, hated, calm = await embedded.score(
        ["I am a gay man.", "I am a Christian.", "I hate Muslim people.", "I disagree with this idea."]
    )
    assert (gay.raw, christian.raw) == (pytest.approx(0.95, abs=0.01), pytest.approx(0.01, abs=0.01))
    assert (gay.score, hated.score, hated.raw) == pytest.approx((0.08848, 0.98901, 0.79195), abs=1e-4)
    assert max(christian.score or 0, calm.score or 0) < 0.1
    assert calm.score == calm.raw, "there is nothing to swap"
    texts = ("You are a stupid idiot.", "I will kill you.", "Shut up, you faggot.", "That is so gay.", "You queer!")
    assert min(await scores(embedded, *texts, "you\x00 idiot", "you idiot \ud83d")) >= 0.9
    book = "The weather was fine and we walked along the river. " * 400
    calm, rude = await scores(embedded, book, f"{book} You fucking idiot. {book}")
    assert (calm < 0.1, rude > 0.9) == (True, True), "an insult does not drown in a book"


def test_thresholds_are_those_of_the_installed_version(embedded):
    """Another version of alt-profanity-check, or other identity words, need other thresholds."""
    ((scorer, measured),) = measured_thresholds().items()
    assert (scorer, measured.version) == (embedded.name, embedded.version)
    assert 0 < measured.harmless_below < measured.toxic_from < 1


UNREAD = {
    "": "there is no text", " \n\t": "there is no text", "🎉🔥": "the text has no words",
    "你是个白痴": "this looks like CJK script, but embedded reads only English",
    "Xyzzyq blorptang vrumfle": "too few of its words are known to the scorer: another language, or unusual spelling",
    "Eres un idiota y nadie te quiere": "this looks like Spanish, but embedded reads only English",
}  # fmt: skip


async def test_what_it_cannot_read_is_unscored_and_says_why(embedded):
    for text, actual in zip(UNREAD, await embedded.score(list(UNREAD)), strict=True):
        assert actual == Toxicity(None, why=UNREAD[text])
    foreign = [text for texts in TEXTS.values() for text in texts]
    assert {score.score for score in await embedded.score(foreign)} == {None}
    assert all(score.score is not None for score in await embedded.score(ENGLISH))


WORDS = st.sampled_from(
    ["the", "gay", "Muslim", "women", "boy", "stupid", "idiot", "nice", "works", "at", "love", "hate", "you", "Jewish"]
)
PHRASES = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)


@given(PHRASES, st.integers(1, 5))
def test_pieces_contain_every_word_once(text, words):
    pieces = in_pieces(text, words)
    assert " ".join(pieces).split() == text.split()
    assert all(len(piece.split()) <= words for piece in pieces)


def test_a_text_is_as_toxic_as_its_worst_piece_and_unscored_if_one_is():
    fine, bad = Toxicity(0.1, 0.2, (("insult", 0.1),)), Toxicity(0.8, 0.7, (("insult", 0.9), ("threat", 0.0)))
    assert worst([fine, bad]) == Toxicity(0.8, 0.7, (("insult", 0.9), ("threat", 0.0)))
    assert worst([bad, Toxicity(None, why="refused")]) == Toxicity(None, why="refused")
    assert worst([]).why == "there is no text"


# Languages

TEXTS = {
    "nl": ("Jij bent een idioot en niemand mag je.", "Hij is dom.", "Wat een klootzak ben jij.", "Het is mooi weer."),
    "de": ("Du bist ein Idiot.", "Halt die Klappe, du bist nichts wert.", "Das Wetter ist heute schön."),
    "fr": ("Tu es un idiot.", "Vous êtes des imbéciles.", "C'est une belle journée.", "Il fait beau aujourd'hui."),
    "es": ("Eres un idiota y nadie te quiere.", "Cállate, no eres nada.", "Hoy hace muy buen tiempo."),
    "it": ("Sei un idiota e nessuno ti vuole.", "Che cosa vuoi da me?", "Oggi il tempo è molto bello."),
    "pt": ("Você é um idiota.", "Ninguém gosta de você, seu burro.", "Não é verdade o que ele disse."),
    "sv": ("Du är en idiot.", "Jag tycker inte om dig.", "Det är vackert väder."),
    "pl": ("Jesteś idiotą i nikt cię nie lubi.", "To jest bardzo dobre."),
    "tr": ("Sen bir aptalsın.", "Bu çok güzel bir gün."),
    "Cyrillic": ("Ты идиот, и никто тебя не любит.",),
    "CJK": ("你是个白痴",),
}
ENGLISH = (
    *("The weather is lovely today.", "Good morning.", "You are an idiot.", "U r an idiot lol", "Die, you pig!"),
    *("Her son went to war in the van with a man.", "I told him to go to hell on the way home."),
    "We sailed down the Rio de la Plata. It was the best part of our year.",
    "He ordered the soupe du jour and a crème brûlée for dessert.",
)
NO_LANGUAGE = ("", "🎉🔥", "Anna Müller", "https://een.nl/het/is @jij #bent")


def test_a_sentence_is_recognised_and_too_few_words_have_no_language():
    for code, text in ((code, text) for code, texts in TEXTS.items() for text in texts):
        assert (find_language(text), not_in(text, ("en",)), not_in(text, ("en", code))) == (code, code, ""), text
    assert [not_in(text, ("en",)) for text in ENGLISH] == [""] * len(ENGLISH)
    assert [find_language(text) for text in NO_LANGUAGE] == [""] * 4
    assert [find_language(text) for text in ("niet Foo Bar Baz", "niet Foo Bar Baz Qux")] == ["nl", ""]
    english = "The council met on Tuesday to talk about the new bridge. " * 20
    assert not_in(f"{english} Jij bent een idioot en niemand mag je. {english}", ("en",)) == "nl"
    assert not_in(english, ("en",)) == ""


async def test_a_text_in_another_language_is_unscored_and_the_scorer_never_sees_it():
    plain = Counting()
    dutch, english, again = await InItsLanguages(plain, ("en",)).score(["Hij is dom.", "He is dumb.", "Hij is dom."])
    assert (english.score, dutch.score, plain.asked) == (0.11, None, ["He is dumb."])
    assert dutch.why == "this looks like Dutch, but counting reads only English"
    assert again == dutch
