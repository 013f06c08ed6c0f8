"""An OpenAI-compatible server on loopback; the latency in milliseconds is part of its address.

    with server() as url:            # http://127.0.0.1:PORT
        call(f"{url}/200/v1")         # every chat completion is answered after 200 ms

It runs in its own process and does as little as possible (no framework, no JSON parsing), so that it is not the
bottleneck. A request with a schema is a referee's, and gets a report; one for log-probabilities is a silent ballot, and
gets a digit with twenty alternatives. `counted` returns the counts so far.
Not a command of its own.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import urlopen

from benchmarks.workload import reply

_LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
_LATENCY = re.compile(rb"POST /(\d+)/v1/chat/completions ")
_SPEAKER = re.compile(rb'\\"(\w+)\\": <0 to 10>')
_MARK = "THE REPLY"
_USAGE = {"prompt_tokens": 100, "completion_tokens": 120, "total_tokens": 220}
_CHOICE = {"index": 0, "message": {"role": "assistant", "content": _MARK}, "finish_reason": "stop"}
_HEAD = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": "bench"}
_BEFORE, _AFTER = json.dumps({**_HEAD, "choices": [_CHOICE], "usage": _USAGE}).split(_MARK)
_TOKENS = (*"123456789", *(f" {digit}" for digit in range(1, 8)), "The", "I", "**", "Score")
"""The alternatives of a ballot's token, the most probable first: a chat model's, asked for one number."""


def report(body: bytes) -> str:
    """The report of a referee on the speakers that the prompt names."""
    names = list(dict.fromkeys(name.decode() for name in _SPEAKER.findall(body)))
    return json.dumps({"scores": {name: random.randrange(8) for name in names}})


def ballot() -> str:
    """The completion of a silent ballot."""
    weights = [random.random() ** 3 / 4**rank for rank in range(len(_TOKENS))]
    ranked = sorted(zip(weights, _TOKENS, strict=True), reverse=True)
    tops = [
        {"token": token, "logprob": math.log(weight / sum(weights)), "bytes": list(token.encode())}
        for weight, token in ranked
    ]
    choice = {
        **_CHOICE,
        "message": {"role": "assistant", "content": tops[0]["token"]},
        "logprobs": {"content": [{**tops[0], "top_logprobs": tops}]},
    }
    return json.dumps({**_HEAD, "choices": [choice], "usage": {**_USAGE, "completion_tokens": 1}})


class ServerState:
    """What all connections share: the counts."""

    def __init__(self) -> None:
        self.requests = self.bytes = 0


class Connection(asyncio.Protocol):
    """Reads requests from the bytes of one connection, and answers them."""

    def __init__(self, state: ServerState) -> None:
        self.state, self.buffer = state, b""
        self.loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n") + 4) > 3:
            length = _LENGTH.search(self.buffer, 0, end)
            total = end + int(length[1]) if length else end
            if len(self.buffer) < total:
                return
            head, body, self.buffer = self.buffer[:end], self.buffer[end:total], self.buffer[total:]
            self.answer(head, body)

    def answer(self, head: bytes, body: bytes) -> None:
        latency, state = _LATENCY.match(head), self.state
        if not latency:
            self.write(json.dumps({"requests": state.requests, "bytes": state.bytes}))
        else:
            state.requests, state.bytes = state.requests + 1, state.bytes + len(body)
            if b'"logprobs":true' in body:
                text = ballot()
            else:
                said = report(body) if b'"response_format"' in body else reply()
                text = _BEFORE + json.dumps(said)[1:-1] + _AFTER
            self.loop.call_later(int(latency[1]) / 1000, self.write, text)

    def write(self, text: str) -> None:
        if self.transport.is_closing():
            return
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text.encode())}\r\n\r\n"
        self.transport.write((head + text).encode())


async def serve() -> None:
    """Serves until it is stopped; the first line of stdout is the port."""
    state = ServerState()
    listener = await asyncio.get_running_loop().create_server(lambda: Connection(state), "127.0.0.1", 0, backlog=4096)
    print(listener.sockets[0].getsockname()[1], flush=True)
    await listener.serve_forever()


@contextmanager
def server() -> Iterator[str]:
    """The server's address, while it runs."""
    command = [sys.executable, "-m", "benchmarks.server"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait()


def counted(url: str) -> dict[str, int]:
    """The number of requests answered so far, and their bytes."""
    with urlopen(url + "/counted") as answer:
        counts: dict[str, int] = json.load(answer)
    return counts


if __name__ == "__main__":
    asyncio.run(serve())
