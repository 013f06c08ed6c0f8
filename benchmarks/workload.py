"""The workload of all benchmarks: four personas debate for two rounds, eight messages, each seeing all before it.

It needs only the standard library, so that every peer's environment can import it. Not a command of its own.
"""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence

NAMES = ("Ada", "Boris", "Chandra", "Dmitri")
ROUNDS = 2
MESSAGES = len(NAMES) * ROUNDS
TASK = "Should our city make its buses and trams free for everyone, and who should pay for it?"
ABOUT = {
    name: f"You are {name}, who sits on the city council and has a view of your own. Speak as yourself, answer what "
    "the others said, say where you disagree and why, and name what would change your mind. Be brief and concrete; "
    "no lists, no greetings, no summary of what was said before you. Say plainly what you do not know."
    for name in NAMES
}
_TEXT = (
    "Free fares sound simple, but the money has to come from somewhere, and last year's accounts say that tickets pay "
    "for about a quarter of the service. If we take that quarter from the general budget, either the property tax "
    "rises or the evening lines go, and those who ride in the evening have no other way home. I would rather halve "
    "the fare for a year on the three lines with room to spare, count who comes, and decide then. What would change "
    "my mind is a city of our size where riding went up, driving went down, and the timetable held. Nobody here has "
    "named one yet."
)
_WORDS = _TEXT.split()
_TEXTS = [" ".join(random.Random(n).sample(_WORDS, len(_WORDS))) for n in range(1024)]
"""The words in different orders, so that compressing a log saves about as much as on real texts."""
_COUNT = itertools.count(100_000)


def reply() -> str:
    """A reply of about 600 characters; no two are equal, so that none can be deduplicated."""
    number = next(_COUNT)
    return f"[{number}] {_TEXTS[number % len(_TEXTS)]}"


Message = Mapping[str, str]


def prompt_for(name: str, turns: Sequence[tuple[str, str]]) -> list[Message]:
    """The conversation so far as the chat messages that a persona gets."""
    history = [{"role": "assistant" if speaker == name else "user", "content": text} for speaker, text in turns]
    return [{"role": "system", "content": ABOUT[name]}, *history]


async def converse(call: Callable[[list[Message]], Awaitable[str]], rounds: int = ROUNDS) -> None:
    """One conversation in a plain loop, the minimum work."""
    turns = [("user", TASK)]
    for name in NAMES * rounds:
        turns.append((name, await call(prompt_for(name, turns))))


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def verdict(label: str, value: float, target: float, *, at_least: bool) -> str:
    """One line that compares a figure with its target."""
    met = value >= target if at_least else value <= target
    bound = "at least" if at_least else "at most"
    return f"{label}: {value:.3f} (target: {bound} {target:.3f}; {'met' if met else 'MISSED'})"
