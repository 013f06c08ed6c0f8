"""The workload that every benchmark holds: four personas debate for two rounds, eight messages, each seeing all before.

It needs nothing but Python, so that every peer's environment can import it; it is not run by itself.
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
"""In another order each time, so that a log that is compressed as a whole gains what it would gain on real texts."""
_COUNT = itertools.count(100_000)


def reply() -> str:
    """What the model answers: about 600 characters, no two alike, so that none is kept free."""
    number = next(_COUNT)
    return f"[{number}] {_TEXTS[number % len(_TEXTS)]}"


Message = Mapping[str, str]


def seen_by(name: str, said: Sequence[tuple[str, str]]) -> list[Message]:
    """The conversation so far as the chat messages this persona is given."""
    told = [{"role": "assistant" if speaker == name else "user", "content": text} for speaker, text in said]
    return [{"role": "system", "content": ABOUT[name]}, *told]


async def converse(call: Callable[[list[Message]], Awaitable[str]], rounds: int = ROUNDS) -> None:
    """One conversation in a plain loop, the least that can be done."""
    said = [("user", TASK)]
    for name in NAMES * rounds:
        said.append((name, await call(seen_by(name, said))))


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def verdict(label: str, value: float, target: float, *, at_least: bool) -> str:
    """One line that holds a figure against its target."""
    met = value >= target if at_least else value <= target
    bound = "at least" if at_least else "at most"
    return f"{label}: {value:.3f} ({bound} {target:.3f} wanted: {'met' if met else 'MISSED'})"
