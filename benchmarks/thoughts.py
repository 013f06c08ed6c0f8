"""What a model's thinking costs to read: CPU per reply with and without it, whole and streamed.

python -m benchmarks.thoughts
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from parley.agents.models.thoughts import ThoughtSplitter
from parley.agents.models.wire import from_completion

TOKEN = "tho "
"""Four characters, as a token has on average."""
ANSWER = '{"score": 9}'


def completion(content: Any, **message: Any) -> bytes:
    usage = {"prompt_tokens": 100, "completion_tokens": 100}
    choice = {"message": {"content": content, **message}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice], "usage": usage}).encode()


def cpu_ms(work: Callable[[], object], times: int) -> float:
    """Milliseconds of CPU of one repetition; the smallest of many, since other work only adds to it."""

    def once() -> float:
        started = time.process_time_ns()
        work()
        return (time.process_time_ns() - started) / 1e6

    return min(once() for _ in range(times))


def streamed(tokens: int) -> str:
    splitter = ThoughtSplitter()
    splitter.feed("<think>")
    for _ in range(tokens):
        splitter.feed(TOKEN)
    return splitter.feed("</think>" + ANSWER) + splitter.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=20_000, help="tokens of thinking")
    parser.add_argument("--times", type=int, default=50, help="repetitions")
    arguments = parser.parse_args()
    thought = TOKEN * arguments.tokens
    bodies = {
        "no thinking": completion(ANSWER),
        "reasoning_content": completion(ANSWER, reasoning_content=thought),
        "<think> in the content": completion(f"<think>{thought}</think>{ANSWER}"),
        "typed parts": completion([{"type": "thinking", "thinking": thought}, {"type": "text", "text": ANSWER}]),
    }
    print(f"{arguments.tokens:,} tokens of thinking, not streamed: body to reply, JSON included")
    plain = 0.0
    for name, body in bodies.items():
        cost = cpu_ms(lambda body=body: from_completion(json.loads(body)), arguments.times)  # type: ignore[misc]
        plain = plain or cost
        print(f"  {name:<24} {cost:7.3f} ms  ({cost - plain:+.3f})")
    print("streamed, one token per chunk: splitting alone")
    for tokens in (arguments.tokens // 4, arguments.tokens, arguments.tokens * 4):
        cost = cpu_ms(lambda tokens=tokens: streamed(tokens), max(3, arguments.times // 10))  # type: ignore[misc]
        print(f"  {tokens:>8,} tokens {cost:9.2f} ms  ({1000 * cost / tokens:.2f} µs per token)")


if __name__ == "__main__":
    main()
