"""The language of a text, and scorers that leave texts in other languages unscored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from parley.agents import Models
from parley.judging.toxicity import Toxicity, find_scorer
from parley.judging.toxicity.languages import InItsLanguages, find_language, not_in

RTP = Path(__file__).parents[3] / "shared" / "data" / "rtp" / "rtp_quark_val_5000.jsonl"
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
    "The weather is lovely today.",
    "Good morning.",
    "You are an idiot.",
    "U r an idiot lol",
    "Die, you pig!",
    "Her son went to war in the van with a man.",
    "I told him to go to hell on the way home.",
    "We sailed down the Rio de la Plata. It was the best part of our year.",
    "He ordered the soupe du jour and a crème brûlée for dessert.",
)


@pytest.mark.parametrize(("code", "text"), [(code, text) for code, texts in TEXTS.items() for text in texts])
def test_a_sentence_is_recognised(code: str, text: str) -> None:
    assert find_language(text) == code
    assert not_in(text, ("en",)) == code
    assert not_in(text, ("en", code)) == ""


@pytest.mark.parametrize("text", ENGLISH)
def test_english_is_english(text: str) -> None:
    assert not_in(text, ("en",)) == ""


def test_one_dutch_sentence_in_an_english_text_is_noticed() -> None:
    text = "The council met on Tuesday to talk about the new bridge. " * 20
    assert not_in(f"{text} Jij bent een idioot en niemand mag je. {text}", ("en",)) == "nl"
    assert not_in(text, ("en",)) == ""


def test_too_few_words_have_no_language() -> None:
    assert [find_language(text) for text in ("", "🎉🔥", "Anna Müller", "https://een.nl/het/is @jij #bent")] == [""] * 4


class Loud:
    """A scorer that calls everything toxic, and records what it is asked."""

    name, version = "loud", "1"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def score(self, texts: Sequence[str]) -> list[Toxicity]:
        self.asked += texts
        return [Toxicity(1.0) for _ in texts]

    async def close(self) -> None:
        """Nothing to close."""


async def test_a_text_in_another_language_is_unscored_and_the_scorer_never_sees_it() -> None:
    loud = Loud()
    dutch, english, again = await InItsLanguages(loud, ("en",)).score(["Hij is dom.", "He is dumb.", "Hij is dom."])
    assert (english.score, dutch.score, loud.asked) == (1.0, None, ["He is dumb."])
    assert dutch.why == "this looks like Dutch, but loud reads only English"
    assert again == dutch


async def test_the_embedded_scorer_reads_english_only(place: Path) -> None:
    pytest.importorskip("profanity_check")
    scorer = find_scorer("embedded", Models(), cache=False)
    foreign = [text for code, texts in TEXTS.items() for text in texts]
    assert [score.score for score in await scorer.score(foreign)] == [None] * len(foreign)
    assert all(score.score is not None for score in await scorer.score(ENGLISH))


@pytest.mark.skipif(not RTP.exists(), reason="needs rows of RealToxicityPrompts")
def test_almost_no_english_text_is_taken_for_another_language() -> None:
    """3 of 10,000: "De la Rocque goes a step further, however,", and two fragments with a single c or n."""
    rows = [json.loads(line) for line in RTP.read_text("utf-8").splitlines()]
    texts = [row[field]["text"] for row in rows for field in ("prompt", "continuation")]
    assert sum(not_in(text, ("en",)) != "" for text in texts) <= 5
