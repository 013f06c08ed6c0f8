"""An OpenAI-compatible server on loopback that answers after as many milliseconds as its address says.

    with server() as url:            # http://127.0.0.1:PORT
        ask(f"{url}/200/v1")         # every chat completion is answered after 200 ms

It runs in a process of its own and does as little as it can (no framework, no JSON read), so that it is not what is
measured. Asked for more than `per_minute` it answers 429. `counted` says what was asked so far. Not run by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import urlopen

from benchmarks.workload import reply

_LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
_LATENCY = re.compile(rb"POST /(\d+)/v1/chat/completions ")
_MARK = "THE REPLY"
_USAGE = {"prompt_tokens": 100, "completion_tokens": 120, "total_tokens": 220}
_CHOICE = {"index": 0, "message": {"role": "assistant", "content": _MARK}, "finish_reason": "stop"}
_HEAD = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": "bench"}
_BEFORE, _AFTER = json.dumps({**_HEAD, "choices": [_CHOICE], "usage": _USAGE}).split(_MARK)
_REFUSED = json.dumps({"error": {"message": "too many requests", "type": "requests", "code": "rate_limit_exceeded"}})


class Door:
    """What all connections share: the counts, the rate limit, and how much latencies differ."""

    def __init__(self, per_minute: float, spread: float) -> None:
        self.per_second, self.spread = per_minute / 60, spread
        self.requests = self.bytes = self.refused = 0
        self._tokens, self._seen = self.per_second, time.monotonic()
        self._dice = random.Random(0)

    def admits(self) -> bool:
        """A bucket that holds one second's worth."""
        if not self.per_second:
            return True
        now = time.monotonic()
        self._tokens = min(self.per_second, self._tokens + (now - self._seen) * self.per_second)
        self._seen = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def wait(self, seconds: float) -> float:
        return seconds * self._dice.lognormvariate(0, self.spread) if self.spread else seconds


class Connection(asyncio.Protocol):
    def __init__(self, door: Door) -> None:
        self.door, self.held = door, b""
        self.loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.held += data
        while (end := self.held.find(b"\r\n\r\n") + 4) > 3:
            stated = _LENGTH.search(self.held, 0, end)
            whole = end + int(stated[1]) if stated else end
            if len(self.held) < whole:
                return
            head, self.held = self.held[:end], self.held[whole:]
            self.asked(head, whole - end)

    def asked(self, head: bytes, length: int) -> None:
        found, door = _LATENCY.match(head), self.door
        if not found:
            self.write("200 OK", json.dumps({"requests": door.requests, "bytes": door.bytes, "refused": door.refused}))
        elif not door.admits():
            door.refused += 1
            self.write("429 Too Many Requests", _REFUSED, "Retry-After: 1\r\n")
        else:
            door.requests, door.bytes = door.requests + 1, door.bytes + length
            text = _BEFORE + json.dumps(reply())[1:-1] + _AFTER
            self.loop.call_later(door.wait(int(found[1]) / 1000), self.write, "200 OK", text)

    def write(self, status: str, text: str, more: str = "") -> None:
        if self.transport.is_closing():
            return
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(text.encode())}\r\n{more}\r\n"
        )
        self.transport.write((head + text).encode())


async def serve(per_minute: float, spread: float) -> None:
    """The first line of stdout is the port."""
    door = Door(per_minute, spread)
    listening = await asyncio.get_running_loop().create_server(lambda: Connection(door), "127.0.0.1", 0, backlog=4096)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await listening.serve_forever()


@contextmanager
def server(per_minute: float = 0, spread: float = 0) -> Iterator[str]:
    """The server's address, while it runs. `spread` is the standard deviation of the latencies' logarithms."""
    command = [sys.executable, "-m", "benchmarks.server", "--per-minute", str(per_minute), "--spread", str(spread)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait()


def counted(url: str) -> dict[str, int]:
    """Requests answered, the bytes they asked with, and requests refused so far."""
    with urlopen(url + "/counted") as answer:
        found: dict[str, int] = json.load(answer)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--per-minute", type=float, default=0, help="requests answered a minute (0: all)")
    parser.add_argument("--spread", type=float, default=0)
    wanted = parser.parse_args()
    asyncio.run(serve(wanted.per_minute, wanted.spread))
