"""Toxicity scorers by name: a model as judge, OpenAI's moderation on loopback, Detoxify, the user's own; the cache."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from aiohttp import web

from parley.agents import AuthError, ConfigError, Models
from parley.judging.toxicity import Toxicity, find_scorer, remote
from parley.judging.toxicity.detoxify import DetoxifyScorer
from parley.judging.toxicity.registry import ScoredOnce
from parley.judging.toxicity.remote import OpenAIModeration
from tests.judging.test_stardtox import COUNTING
from tests.servers import Server, first_token


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


async def test_no_text_is_scored_twice_and_what_failed_is_tried_again():
    plain = Counting()
    scorer = ScoredOnce(plain)
    for texts, asked in ((["one", "two", "one", ""], ["one", "two", ""]), (["two", "one", "", "three"], ["", "three"])):
        assert await scorer.score(texts) == await Counting().score(texts)
        assert plain.asked == asked
        plain.asked.clear()


async def test_a_model_judges_from_0_to_100(place, server):
    replies = {
        "kind text": '{"reason": "Friendly.", "toxicity": 5}',
        "rude text": '{"toxicity": 90}',
        "odd text": "Rather bad.",
    }
    server.answer = lambda nth, body: server.reply(next(r for k, r in replies.items() if k in str(body["messages"])))
    models = Models()
    judge = find_scorer(f"judge:{server.model()}", models)
    kind, rude, odd, none = await judge.score(["a kind text", "a rude text", "an odd text", ""])
    assert (kind.score, rude.score, odd.score, none.score) == (0.05, 0.9, None, None)
    assert ("unparsed" in odd.why, judge.name) == (True, "judge:server/judge")
    await judge.close()
    await models.close()


async def test_a_silent_models_score_is_the_mean_over_the_numbers_it_would_write(place, server):
    def answer(nth: int, body: dict[str, Any]) -> Any:
        shares = {"9": 0.6, "5": 0.2, "words": 0.2} if "ruffian" in str(body["messages"]) else {"words": 1.0}
        return server.reply(next(iter(shares)), first_token(shares))

    server.answer = answer
    models = Models()
    silent = find_scorer(f"silent:{server.model()}", models)
    rude, odd, none = await silent.score(["you ruffian", "an odd text", ""])
    assert rude.score == pytest.approx((0.75 * 9 + 0.25 * 5 - 1) / 8), "of the probability on 1 to 9"
    assert (odd.score, none.score, silent.name) == (None, None, "silent:server/judge")
    assert odd.why == "the model's reply is unparsed: 'words', unread: 0.0% of the probability is on 1 to 9"
    await models.close()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mine.py:Half", "lacks score, close"),
        ("mine.py:Gone", "does not exist"),
        ("gone.py:Mine", "no file"),
        ("detoxifi", "unknown scorer 'detoxifi' (did you mean detoxify? known: "),
        ("judge:nobody/x", "unknown provider 'nobody'"),
    ],
)
async def test_your_own_scorer_and_unknown_names(place, name, said):
    (place / "mine.py").write_text(COUNTING + "\nclass Half:\n    name = 'half'\n")
    mine = find_scorer("mine.py:Counting", Models())
    assert await mine.score(["x"]) == [Toxicity(0.01, 0.02)]
    await mine.close()
    with pytest.raises(ConfigError) as error:
        find_scorer(name, Models())
    assert said in str(error.value)


# Detoxify, on a package that answers as Detoxify 0.5.4 does: its weights need the net

PACKAGE = """
class Detoxify:
    def __init__(self, kind):
        if OFFLINE:
            raise OSError("<urlopen error [Errno -2] Name or service not known>")

    def predict(self, texts):
        # A batch of one is squeezed to a number, and what is too long is cut: as in the real package.
        scores = [0.9 if "idiot" in " ".join(text.split()[:400]) else 0.1 for text in texts]
        scores = scores if len(scores) > 1 else scores[0]
        return {"toxicity": scores, "insult": scores}
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    info = tmp_path / "detoxify-0.5.4.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: detoxify\nVersion: 0.5.4\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "detoxify", raising=False)
    yield tmp_path / "detoxify.py"
    sys.modules.pop("detoxify", None)


@pytest.mark.parametrize("offline", [False, True])
async def test_texts_alone_and_in_company_and_long_ones_in_pieces(package, offline):
    package.write_text(PACKAGE.replace("OFFLINE", str(offline)))
    scorer = DetoxifyScorer()
    if offline:
        with pytest.raises(ConfigError, match="weights could not be loaded; they are downloaded on first use"):
            await scorer.score(["You idiot."])
        return
    assert scorer.version == "unbiased 0.5.4"
    assert [item.score for item in await scorer.score(["You idiot."])] == [0.9]
    actual = await scorer.score(["Hello.", "", "word " * 10_000 + "idiot"])
    assert [item.score for item in actual] == [0.1, None, 0.9]
    assert dict(actual[0].labels) == {"toxicity": 0.1, "insult": 0.1}
    await scorer.close()


# OpenAI's moderation


class Service(Server):
    """The service. `answer(n, body)` may give the n-th request another response."""

    def _add_routes(self, app: web.Application) -> None:
        app.router.add_post("/{path:.*}", self._respond)

    def completion(self, body: dict[str, Any]) -> web.Response:
        return web.json_response({"results": [{"category_scores": rate(text)} for text in body["input"]]})


def rate(text: str) -> dict[str, float]:
    rude = 0.8 if "idiot" in text else 0.01
    return {"harassment": rude, "harassment/threatening": 0.0, "hate": 0.02, "hate/threatening": 0.0, "sexual": 0.99}


@pytest.fixture
def service(monkeypatch):
    serving = Service()
    monkeypatch.setenv("OPENAI_API_KEY", "secret-openai")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{serving.port}/v1")
    yield serving
    serving.close()


async def scored(*texts: str, **options: Any) -> list[Toxicity]:
    scorer = OpenAIModeration(**options)
    try:
        return await scorer.score(texts)
    finally:
        await scorer.close()


async def test_moderation_in_batches_takes_harassment_and_hate_and_keeps_the_rest(service):
    actual = await scored("You idiot.", "", *(f"text {n}" for n in range(40)))
    assert (actual[0].score, dict(actual[0].labels)) == (0.8, rate("You idiot."))
    assert (actual[1].score, actual[1].why) == (None, "there is no text")
    assert {item.score for item in actual[2:]} == {0.02}
    assert sorted(len(body["input"]) for body in service.asked) == [9, 32]
    assert {body["model"] for body in service.asked} == {"omni-moderation-2024-09-26"}
    assert service.headers[0]["Authorization"] == "Bearer secret-openai"
    service.asked.clear()
    long = await scored("word " * 10_000 + "idiot", "zero \x00 and half \ud83d idiot")
    assert [item.score for item in long] == [0.8, 0.8]
    assert [len(text.split()) for body in service.asked for text in body["input"]] == [*[1000] * 10, 1, 6]
    assert service.asked[0]["input"][-1] == "zero \x00 and half ? idiot"
    assert await scored("") == [Toxicity(None, why="there is no text")]


DOWN, LONG = {"status": 500, "text": "oh no"}, "<html>" + "x" * 60


@pytest.mark.parametrize(
    ("response", "why", "requests"),
    [
        (DOWN, " answered 500: oh no", 2),
        (None, "Cannot connect to host ", 0),
        ("slow", "openai-moderation: no answer within 0.1 s", 2),
        ({"status": 429, "headers": {"Retry-After": "4000"}}, "too many requests", 1),
        ({"status": 429, "headers": {"Retry-After": "0.01"}}, "too many requests", 2),
        ({"status": 307, "headers": {"Location": "/v2"}}, " answered 307", 1),
        ({"text": LONG}, f" sent an unexpected reply: '{LONG[:60]}'", 2),
        ({"text": '{"results": [{}]}'}, " sent an unexpected reply: \"{'results': [{}]}\"", 2),
        ({"text": '{"results": []}'}, " sent an unexpected reply: '0 results for 1 text'", 2),
    ],
)
async def test_after_the_last_attempt_a_text_is_unscored_with_the_reason(service, monkeypatch, response, why, requests):
    paused: list[tuple[int, float | None]] = []
    monkeypatch.setattr(remote, "backoff", lambda *asked: paused.append(asked) or 0.0)
    service.answer = lambda nth, body: web.Response(**response)
    if response == "slow":
        service.delay = 5.0
        monkeypatch.setattr(remote, "TIMEOUT", 0.1)
    options: dict[str, Any] = {"retries": 1} if response else {"base_url": "http://127.0.0.1:9", "retries": 0}
    (actual,) = await scored("You idiot.", **options)
    assert (actual.score, len(service.asked)) == (None, requests)
    assert paused == ([] if requests < 2 else [(1, 0.01 if why == "too many requests" else None)])
    assert actual.why.endswith(why) if why.startswith(" ") else why in actual.why
    assert not [word for word in ("secret", "127.0.0.1") if word in actual.why], "what is shared names no address"


async def test_when_every_batch_fails_the_next_ones_have_one_attempt(service, monkeypatch):
    """Twelve batches with a retry each; from the eighth failure in a row (two for each connection) none is retried."""
    monkeypatch.setattr(remote, "backoff", lambda attempt, after: 0.0)
    service.answer = lambda nth, body: web.Response(**DOWN)
    assert {item.score for item in await scored(*(f"text {n}" for n in range(12 * 32)), retries=1)} == {None}
    assert len(service.asked) == 12 + 7


async def test_a_rejected_key_stops_and_a_rejected_text_does_not_cost_the_others(service, monkeypatch):
    def answer(nth: int, body: dict[str, Any]) -> web.Response | None:
        return web.json_response({"error": {"message": "no"}}, status=400) if "bad" in body["input"] else None

    service.answer = answer
    actual = await scored("fine", "bad", "You idiot.")
    assert [item.score for item in actual] == [0.02, None, 0.8]
    assert "answered 400: no" in actual[1].why
    service.answer = lambda nth, body: web.json_response({"error": {"message": "secret-openai is wrong"}}, status=401)
    with pytest.raises(AuthError, match="OPENAI_API_KEY") as error:
        await scored("one", "two")
    assert "secret" not in str(error.value)
    with pytest.raises(ConfigError, match=r"openai-moderation: the key would go to example\.org unencrypted"):
        OpenAIModeration("http://example.org/v1")
    monkeypatch.delenv("OPENAI_BASE_URL")
    public = OpenAIModeration()
    assert (public.base_url, public.retries) == ("https://api.openai.com/v1", 5)
