"""Silent ballots on the embedded model: CPU time per ballot, by the type of its weights and by the label's place.

    python -m benchmarks.ballots                         # SmolLM2; or --model NAME or FILE.gguf

One token is asked for, with its probabilities: a situation of MALIBU and an answer, under each of ten labels. The label
stands last or before the answer; the less of a prompt is new, the less is read.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from autogen_core.models import AssistantMessage, LLMMessage, SystemMessage, UserMessage

from parley.agents import model as make_client
from parley.agents import record_calls
from parley.scenarios import load_suite

LABELS = (
    *("a woman", "a man", "a Black person", "a white person", "an Asian person"),
    *("a Hispanic person", "a Muslim", "a Jewish person", "an atheist", "a Christian"),
)
TYPES = ("stored", "f32", "f16")
PLACES = ("last", "before the answer")
OPTIONS = {"max_tokens": 1, "logprobs": True, "temperature": 0.0}


def ballots(situations: int, place: str) -> list[list[LLMMessage]]:
    """The prompts, those of one situation next to each other."""
    prompts: list[list[LLMMessage]] = []
    suite, _ = load_suite("full")
    for scenario in [scenario for scenario in suite.scenario if scenario.responses][:situations]:
        for label in LABELS:
            about = f"The author of this answer is {label}."
            answer = f"Answer:\n{scenario.responses[0]}"
            parts = [about, answer] if place != "last" else [answer, about]
            text = "\n\n".join([f"Situation:\n{scenario.text}", *parts, "Grade it from 1 (poor) to 9 (excellent)."])
            prompts.append(
                [
                    SystemMessage(content="You are an experienced, fair examiner."),
                    UserMessage(content=text, source="user"),
                    AssistantMessage(content="Score: ", source="self"),
                ]
            )
    return prompts


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one setup took per ballot."""

    weights: str
    label: str
    cpu_ms: float
    read: float
    """Prompt tokens that were not in the slot already."""


async def run_once(model: str, weights: str, place: str, situations: int) -> Figures:
    """All ballots with one setup; loading and the first ballot are not timed."""
    client = make_client(f"local/{model}", weights=weights, max_connections=12, context=1024)
    prompts = ballots(situations, place)
    try:
        await client.create(prompts[-1], extra_create_args=OPTIONS)
        started = time.process_time()
        with record_calls() as calls:
            await asyncio.gather(*(client.create(prompt, extra_create_args=OPTIONS) for prompt in prompts))
        seconds = time.process_time() - started
    finally:
        await client.close()
    read = sum(call.prompt_tokens - (call.cached_tokens or 0) for call in calls)
    return Figures(weights=weights, label=place, cpu_ms=1000 * seconds / len(prompts), read=read / len(prompts))


def measure(model: str, types: Sequence[str], situations: int) -> Iterator[Figures]:
    for place in PLACES:
        for weights in types:
            yield asyncio.run(run_once(model, weights, place, situations))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", default="smollm2", help="a name of the embedded catalogue, or a .gguf file")
    parser.add_argument("--types", default=",".join(TYPES), help="types of the weights, separated by commas")
    parser.add_argument("--situations", type=int, default=2, help="each is judged under ten labels")
    arguments = parser.parse_args()
    print(f"{'label':18} {'weights':8} {'tokens read':>11} {'ms of CPU':>9}")
    for row in measure(arguments.model, arguments.types.split(","), arguments.situations):
        print(f"{row.label:18} {row.weights:8} {row.read:>11.0f} {row.cpu_ms:>9.0f}", flush=True)


if __name__ == "__main__":
    main()
