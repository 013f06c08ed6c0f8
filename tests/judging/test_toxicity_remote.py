"""OpenAI's moderation, on a server on loopback: answers, refusals, quotas, nonsense."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from parley.agents import AuthError
from parley.judging.toxicity.remote import OpenAIModeration

Answer = Callable[[int, dict[str, Any]], web.Response | None]


class Service:
    """The service. `answer(n, body)` may give the n-th request another response."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[Any] = []
        self.times: list[float] = []
        self.answer: Answer = lambda nth, body: None

    async def respond(self, request: web.Request) -> web.Response:
        body = await request.json()
        nth = len(self.asked)
        self.asked.append(body)
        self.headers.append(request.headers)
        self.times.append(time.monotonic())
        other = self.answer(nth, body)
        if other is not None:
            return other
        return web.json_response({"results": [{"category_scores": rate(text)} for text in body["input"]]})


def rate(text: str) -> dict[str, float]:
    rude = 0.8 if "idiot" in text else 0.01
    return {"harassment": rude, "harassment/threatening": 0.0, "hate": 0.02, "hate/threatening": 0.0, "sexual": 0.99}


@pytest.fixture
async def service(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    serving = Service()
    app = web.Application(client_max_size=1 << 24)
    app.router.add_post("/{path:.*}", serving.respond)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    monkeypatch.setenv("OPENAI_API_KEY", "secret-openai")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
    yield serving
    await runner.cleanup()


async def test_moderation_in_batches_takes_harassment_and_hate_and_keeps_the_rest(service: Service) -> None:
    scorer = OpenAIModeration()
    actual = await scorer.score(["You idiot.", "", *(f"text {n}" for n in range(40))])
    assert (actual[0].score, dict(actual[0].labels)["sexual"]) == (0.8, 0.99)
    assert (actual[1].score, actual[1].why) == (None, "there is no text")
    assert {item.score for item in actual[2:]} == {0.02}
    assert sorted(len(body["input"]) for body in service.asked) == [9, 32]
    assert service.headers[0]["Authorization"] == "Bearer secret-openai"
    await scorer.close()


async def test_over_quota_it_waits_as_long_as_the_server_says(service: Service) -> None:
    busy = web.json_response({}, status=429, headers={"Retry-After": "0.3"})
    service.answer = lambda nth, body: busy if nth == 0 else None
    scorer = OpenAIModeration()
    (actual,) = await scorer.score(["You idiot."])
    assert actual.score is not None
    assert service.times[1] - service.times[0] >= 0.29
    await scorer.close()


@pytest.mark.parametrize(
    ("response", "why"),
    [
        ({"status": 500, "text": "oh no"}, "answered 500: oh no"),
        (None, "Cannot connect"),
        ({"status": 429, "headers": {"Retry-After": "4000"}}, "too many requests"),
        ({"text": "<html>"}, "an unexpected reply"),
        ({"text": '{"results": [{}]}'}, "an unexpected reply"),
        ({"text": '{"results": []}'}, "an unexpected reply"),
    ],
)
async def test_after_the_last_attempt_a_text_is_unscored_with_the_reason(
    service: Service, response: dict[str, Any] | None, why: str
) -> None:
    service.answer = lambda nth, body: web.Response(**(response or {}))
    scorer = OpenAIModeration(retries=1) if response else OpenAIModeration("http://127.0.0.1:9", retries=0)
    (actual,) = await scorer.score(["You idiot."])
    assert actual.score is None
    assert why in actual.why
    assert "secret" not in actual.why
    assert "127.0.0.1" not in actual.why, "what is stored and shared names no address"
    await scorer.close()


async def test_when_it_was_down_further_texts_cost_one_try_each(service: Service) -> None:
    service.answer = lambda nth, body: web.Response(status=500)
    scorer = OpenAIModeration(retries=1)
    actual = await scorer.score([f"text {n}" for n in range(10 * 32)])
    assert {item.score for item in actual} == {None}
    assert len(service.asked) < 2 * 10, "two attempts for each of ten batches, if it did not notice"
    service.answer = lambda nth, body: None
    assert [item.score for item in await scorer.score(["one"])] == [0.02]
    await scorer.close()


async def test_a_rejected_key_stops_with_one_line_that_does_not_contain_it(service: Service) -> None:
    service.answer = lambda nth, body: web.json_response({"error": {"message": "secret-openai is wrong"}}, status=401)
    scorer = OpenAIModeration()
    with pytest.raises(AuthError, match="OPENAI_API_KEY") as error:
        await scorer.score(["one", "two"])
    assert "secret" not in str(error.value)
    await scorer.close()


async def test_one_text_that_is_not_taken_does_not_cost_the_others(service: Service) -> None:
    def answer(nth: int, body: dict[str, Any]) -> web.Response | None:
        return web.json_response({"error": {"message": "no"}}, status=400) if "bad" in body["input"] else None

    service.answer = answer
    scorer = OpenAIModeration()
    actual = await scorer.score(["fine", "bad", "You idiot."])
    assert [item.score for item in actual] == [0.02, None, 0.8]
    assert "answered 400: no" in actual[1].why
    await scorer.close()


async def test_a_long_text_goes_in_pieces_and_odd_characters_travel(service: Service) -> None:
    scorer = OpenAIModeration()
    actual = await scorer.score(["word " * 10_000 + "idiot", "zero \x00 and half \ud83d idiot"])
    assert [item.score for item in actual] == [0.8, 0.8]
    assert sum(len(body["input"]) for body in service.asked) == 12
    await scorer.close()
