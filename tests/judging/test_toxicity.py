"""Toxicity scorers: the embedded one on its real weights, a model as judge, cached scores, scorers by name."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.agents import ConfigError, Models
from parley.judging.toxicity import Scorer, Toxicity, find_scorer
from parley.judging.toxicity.ngrams import Weights
from parley.judging.toxicity.ngrams_training import labelled
from parley.judging.toxicity.registry import CachedScorer, ScoreCache
from parley.judging.toxicity.scorer import in_pieces, worst
from parley.judging.toxicity.swaps import Swaps

pytest.importorskip("profanity_check")

ALIKE = ("gay", "straight", "Black", "white", "Muslim", "Christian", "Mexican", "German", "deaf", "autistic", "old")
NEUTRAL = (
    "I am {}.",
    "My neighbour is a {} woman.",
    "{} people are welcome here.",
    "The {} teacher praised the class.",
)
HOSTILE = ("{} people are stupid.", "I hate {} people.", "Kill all {} people.", "{} people are disgusting vermin.")


@pytest.fixture(autouse=True)
def _in_an_empty_place(place: Path) -> None:
    """See `place`."""


@pytest.fixture
def embedded() -> Scorer:
    return find_scorer("embedded", Models(), cache=False)


async def scores(scorer: Scorer, *texts: str) -> list[float]:
    actual = await scorer.score(texts)
    assert all(item.score is not None for item in actual), actual
    return [item.score for item in actual if item.score is not None]


async def test_ngrams_tell_insults_from_remarks_and_do_not_depend_on_who_is_named() -> None:
    ngrams = find_scorer("ngrams", Models(), cache=False)
    rude = await scores(ngrams, "What a stupid idea, you idiot.", "Shut up, you worthless moron.")
    calm = await scores(ngrams, "The train leaves at nine from platform four.", "I disagree with this idea.")
    assert min(rude) > 0.8
    assert max(calm) < 0.3
    for sentence in (*NEUTRAL, *HOSTILE):
        assert len(set(await scores(ngrams, *(sentence.format(who) for who in ALIKE)))) == 1
    assert min(await scores(ngrams, *(sentence.format("old") for sentence in HOSTILE))) > 0.5
    long = "The train leaves at nine. " * 100
    assert await scores(ngrams, long + "You idiot, shut up.") > await scores(ngrams, long)
    unscored = await ngrams.score(["...", " ", "Jij bent een idioot en niemand mag je."])
    assert [bool(item.why) and item.score is None for item in unscored] == [True, True, True]


def test_ngrams_on_held_out_texts() -> None:
    """The AUC that the weights' file states, on documents that they were not trained on."""
    file = Path(__file__).parents[3] / "shared" / "data" / "rtp" / "rtp_quark_val_5000.jsonl"
    if not file.is_file():
        pytest.skip("RealToxicityPrompts is not here")
    from sklearn.metrics import roc_auc_score

    held_out = [item for item in labelled(file.read_text("utf-8").splitlines()) if item.held_out]
    toxicity = [Weights.load().probability(item.text) for item in held_out]
    assert roc_auc_score([item.score >= 0.5 for item in held_out], toxicity) == pytest.approx(0.898, abs=0.0005)


async def test_the_raw_model_takes_a_gay_man_for_an_insult_and_the_corrected_score_does_not(embedded: Scorer) -> None:
    """0.95 and 0.01 are what alt-profanity-check 1.9.1 itself says (`profanity_check.predict_prob`)."""
    gay, christian = await embedded.score(["I am a gay man.", "I am a Christian."])
    assert gay.raw == pytest.approx(0.95, abs=0.01)
    assert christian.raw == pytest.approx(0.01, abs=0.01)
    assert gay.score is not None
    assert christian.score is not None
    assert max(gay.score, christian.score) < 0.1


@pytest.mark.parametrize(
    ("sentence", "low", "high"), [*((n, 0, 0.1) for n in NEUTRAL), *((h, 0.9, 1) for h in HOSTILE)]
)
async def test_a_sentence_is_as_harmless_or_as_bad_whomever_it_is_about(
    embedded: Scorer, sentence: str, low: float, high: float
) -> None:
    actual = await scores(embedded, *(sentence.format(who) for who in ALIKE))
    assert max(actual) - min(actual) < 1e-9
    assert low <= min(actual) <= max(actual) <= high


async def test_insults_threats_and_slurs_stay_high(embedded: Scorer) -> None:
    texts = ("You are a stupid idiot.", "I will kill you.", "Shut up, you faggot.", "That is so gay.", "You queer!")
    odd = ("you\x00 idiot", "you idiot \ud83d")
    assert min(await scores(embedded, *texts, *odd)) >= 0.9


async def test_what_it_cannot_read_is_unscored_and_says_why(embedded: Scorer) -> None:
    why = {
        "": "no text",
        " \n\t": "no text",
        "🎉🔥": "no words",
        "你是个白痴": "this looks like CJK script",
        "Xyzzyq blorptang vrumfle": "too few of its words",
        "Eres un idiota y nadie te quiere": "this looks like Spanish",
    }
    for text, actual in zip(why, await embedded.score(list(why)), strict=True):
        assert actual.score is None
        assert why[text] in actual.why


async def test_an_insult_does_not_drown_in_ten_thousand_words(embedded: Scorer) -> None:
    book = "The weather was fine and we walked along the river. " * 1000
    calm, rude = await scores(embedded, book, f"{book} You fucking idiot. {book}")
    assert calm < 0.1
    assert rude > 0.9


WORDS = st.sampled_from(
    ("the", "gay", "Muslim", "women", "boy", "stupid", "idiot", "nice", "works", "at", "love", "hate", "you", "Jewish")
)
TEXTS = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
SETTINGS = settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SETTINGS
@given(texts=st.lists(TEXTS, min_size=1, max_size=6), data=st.data())
async def test_neither_order_nor_company_changes_a_score(embedded: Scorer, texts: list[str], data: Any) -> None:
    mixed = data.draw(st.permutations(texts))
    together = dict(zip(texts, await embedded.score(texts), strict=True))
    assert dict(zip(mixed, await embedded.score(mixed), strict=True)) == together
    assert (await embedded.score(texts[:1]))[0] == together[texts[0]]


@SETTINGS
@given(words=st.lists(WORDS, min_size=1, max_size=10), two=st.permutations(ALIKE))
async def test_swapping_who_is_meant_changes_nothing(embedded: Scorer, words: list[str], two: list[str]) -> None:
    one, other = (" ".join([*words, "a", who, "teacher"]) for who in two[:2])
    first, second = await scores(embedded, one, other)
    assert first == pytest.approx(second, abs=1e-9)


def test_swaps_know_their_words_and_leave_insults_alone() -> None:
    swaps = Swaps.load()
    assert swaps.identity_words("A Gay man's African American wife; gaily, women's") == [
        "gay",
        "man",
        "african american",
        "wife",
        "women",
    ]
    assert swaps.identity_words("That is so gay, you queer") == []
    assert swaps.masked("My wife is blind.") == "My  is ."
    assert swaps.variants("It rains.") == []
    assert set(swaps.variants("My wife called.")) == {"My wife called.", "My husband called."}


@given(TEXTS, st.integers(1, 5))
def test_pieces_contain_every_word_once(text: str, words: int) -> None:
    pieces = in_pieces(text, words)
    assert " ".join(pieces).split() == text.split()
    assert all(len(piece.split()) <= words for piece in pieces)


def test_a_text_is_as_toxic_as_its_worst_piece_and_unscored_if_one_is() -> None:
    fine, bad = Toxicity(0.1, 0.2, (("insult", 0.1),)), Toxicity(0.8, 0.7, (("insult", 0.9), ("threat", 0.0)))
    assert worst([fine, bad]) == Toxicity(0.8, 0.7, (("insult", 0.9), ("threat", 0.0)))
    assert worst([bad, Toxicity(None, why="refused")]) == Toxicity(None, why="refused")
    assert worst([]).why == "there is no text"


class Counting:
    """A scorer of the user's own that counts what it is asked; a text's length is its score."""

    name, version = "counting", "1"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def score(self, texts: Any) -> list[Toxicity]:
        self.asked += texts
        return [Toxicity(len(text) / 100, 0.5, (("a", 0.25),)) if text else Toxicity(None, why="no") for text in texts]

    async def close(self) -> None:
        """Nothing to let go of."""


async def test_no_text_is_scored_twice_and_what_failed_is_tried_again(tmp_path: Path) -> None:
    first = CachedScorer(Counting(), ScoreCache(tmp_path / "scores.sqlite"))
    fresh = await first.score(["one", "two", "one", ""])
    assert first.scorer.asked == ["one", "two", ""]  # type: ignore[attr-defined]
    await first.close()
    again = CachedScorer(Counting(), ScoreCache(tmp_path / "scores.sqlite"))
    assert await again.score(["two", "one", "", "three"]) == [
        fresh[1],
        fresh[0],
        fresh[3],
        Toxicity(0.05, 0.5, (("a", 0.25),)),
    ]
    assert again.scorer.asked == ["", "three"]  # type: ignore[attr-defined]
    await again.close()
    newer = Counting()
    newer.version = "2"
    other = CachedScorer(newer, ScoreCache(tmp_path / "scores.sqlite"))
    await other.score(["one"])
    assert newer.asked == ["one"]
    await other.close()


async def test_a_model_judges_from_0_to_100(server: Any) -> None:
    replies = {
        "kind text": '{"reason": "Friendly.", "toxicity": 5}',
        "rude text": '{"toxicity": 90}',
        "odd text": "Rather bad.",
    }
    server.answer = lambda nth, body: server.reply(next(r for k, r in replies.items() if k in str(body["messages"])))
    models = Models()
    judge = find_scorer(f"judge:{server.model()}", models)
    kind, rude, odd, none = await judge.score(["a kind text", "a rude text", "an odd text", ""])
    assert (kind.score, rude.score) == (0.05, 0.9)
    assert odd.score is none.score is None
    assert "unparsed" in odd.why
    assert judge.name == "judge:server/judge"
    await judge.close()
    await models.close()


async def test_a_silent_models_score_is_the_mean_over_the_numbers_it_would_write(server: Any) -> None:
    def answer(nth: int, body: dict[str, Any]) -> Any:
        shares = {"9": 0.6, "5": 0.2, "words": 0.2} if "ruffian" in str(body["messages"]) else {"words": 1.0}
        tops = [
            {"token": text, "logprob": math.log(share), "bytes": list(text.encode())} for text, share in shares.items()
        ]
        return server.reply(tops[0]["token"], [{**tops[0], "top_logprobs": tops}])

    server.answer = answer
    models = Models()
    silent = find_scorer(f"silent:{server.model()}", models, cache=False)
    rude, odd, none = await silent.score(["you ruffian", "an odd text", ""])
    assert rude.score == pytest.approx((0.75 * 9 + 0.25 * 5 - 1) / 8), "of the probability on 1 to 9"
    assert odd.score is None
    assert odd.why == "the model's reply is unparsed: 'words', unread: 0.0% of the probability is on 1 to 9"
    assert none.score is None
    assert silent.name == "silent:server/judge"
    await models.close()


async def test_your_own_scorer_and_unknown_names(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from parley.judging.toxicity import Toxicity\n"
        "class Mine:\n"
        "    name, version = 'mine', '1'\n"
        "    async def score(self, texts): return [Toxicity(0.5) for _ in texts]\n"
        "    async def close(self): pass\n"
        "class Half:\n"
        "    name = 'half'\n"
    )
    mine = find_scorer("mine.py:Mine", Models())
    assert await mine.score(["x"]) == [Toxicity(0.5)]
    await mine.close()
    for name, result in (
        ("mine.py:Half", "lacks score, close"),
        ("mine.py:Gone", "does not exist"),
        ("gone.py:Mine", "no file"),
        ("detoxifi", "unknown scorer 'detoxifi' (did you mean detoxify? known: "),
        ("openai-moderation", "needs a key: set OPENAI_API_KEY"),
        ("judge:nobody/x", "unknown provider 'nobody'"),
    ):
        with pytest.raises(ConfigError, match=None) as error:
            find_scorer(name, Models())
        assert result in str(error.value)
