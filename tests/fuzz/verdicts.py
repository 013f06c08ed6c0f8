"""Replies with a number that is not the verdict: forms × places × vendors' shapes × readers, drawn by a seed.

Nothing may be stored but the verdict, and a verdict in the asked form must be. A judge that is asked once more says the
same again.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

from autogen_core.models import UserMessage
from pydantic import BaseModel

from parley.agents import SilentBallot, scale, structured_reply
from parley.agents.ballots import ask_ballot
from parley.agents.models.anthropic_messages import read_message
from parley.agents.models.base import Client
from parley.agents.models.reply import Reply
from parley.agents.models.request import Request
from parley.agents.models.wire import from_completion
from tests.vendors.attacks import FORMS_OF_THOUGHT

ASK = [UserMessage(content="Score it, from 1 to 9.", source="user")]
BALLOT = SilentBallot(question="How good is it, from 1 to 9?", metric="Overall")
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
USAGE = {"prompt_tokens": 1, "completion_tokens": 1}


class Score(BaseModel):
    score: scale(1, 9)  # type: ignore[valid-type]
    why: str = ""


class Case(NamedTuple):
    """A reply to a reader, and what it says: the verdict, and whether that has the form that was asked for."""

    reader: str
    kind: str
    reply: Reply
    verdict: float | None
    asked_form: bool = False


NAMES = [
    "scratchpad", "analysis", "cot", "draft", "notes", "inner", "monologue", "plan", "reflection", "deliberation",
    "hidden", "self_check", "思考", "推理", "réflexion", "Überlegung", "мысли", "raciocínio", "düşünce", "考え", "सोच",
    "thіnk", "thinkіng", "th\u200bink", "antml:x", "step", "example",
]  # fmt: skip
REFUSALS = (
    "I must decline.", "Unfortunately, I cannot.", "I'd rather not rate people.", "Je dois refuser.",
    "Das kann ich nicht.", "Lo siento, no puedo.", "Não posso.", "Non posso.", "Nie mogę.", "Я не могу.",
    "できません。", "我不能评价。", "لا أستطيع.", "I'm sorry, but I can't.", "That is not something I do.",
)  # fmt: skip
CORRECTIONS = (
    "no, {}", "Wait: {}.", "I take that back: {}", "Nein, {}.", "→ {}", "Actually {}", "\n\n{}", "(should be {})",
)  # fmt: skip
EXAMPLES = (
    "The format is {}", "For example: {}", "Placeholder: {}", "You want something like {}",
    "A weak answer would get {}", "Others would say {}", "Not {}", "My first draft was {}",
    "Hier ein Beispiel: {}", "例: {}", "Template: {}",
)  # fmt: skip


def aside(rng: random.Random, inner: str) -> str:
    """A thought or a quotation in a form that no table has."""
    name = rng.choice(NAMES) if rng.random() < 0.7 else "".join(rng.choices("abcdefghijklmnop", k=rng.randrange(2, 9)))
    name = rng.choice((name, name.upper(), name.title()))
    forms = (
        f"<{name}>{inner}</{name}>", f"[{name}]{inner}[/{name}]", f"```{name}\n{inner}\n```", f"<!-- {inner} -->",
        f"> {inner}\n", f"{name}: {inner}\n", f"*{inner}*\n", f"({inner})", f"<<{name}>>{inner}<</{name}>>",
        f"“{inner}”", f"## {name}\n{inner}\n", f"<|{name}|>{inner}<|/{name}|>", f"\\boxed{{{inner}}}", f"// {inner}\n",
    )  # fmt: skip
    return rng.choice(forms)


def told(rng: random.Random, score: int) -> str:
    """A verdict in words."""
    number = rng.choice((str(score), WORDS[score], WORDS[score].title()))
    return rng.choice(("{}", "My verdict: {}.", "So {} it is.", "I give {}.", "评分：{}", "Ich gebe {}.")).format(
        number
    )


def spaced(rng: random.Random, *pieces: str) -> str:
    return rng.choice((" ", "\n", "\n\n", "")).join(pieces)


def objects(rng: random.Random) -> Case:
    """A reply that should be an object."""
    score, decoy = rng.sample(range(1, 10), 2)
    good, bad = (json.dumps({"score": n, **({"why": "clear"} if rng.random() < 0.3 else {})}) for n in (score, decoy))
    kind = rng.choice(
        ("asked", "thought", "aside", "correction", "refusal", "example", "twice", "said before", "more keys")
    )
    verdict: int | None = score
    if kind == "asked":
        text = rng.choice(("{}", " {}\n", "```json\n{}\n```", "```\n{}\n```", "Here is my evaluation:\n{}", "\ufeff{}"))
        text = text.replace("{}", good)
    elif kind == "thought":
        text = rng.choice(list(FORMS_OF_THOUGHT.values()))(f"Perhaps {bad}.", good)
    elif kind == "aside":
        pieces = [aside(rng, bad), told(rng, score)]
        text = spaced(rng, *rng.sample(pieces, 2))
    elif kind == "correction":
        text = spaced(rng, bad, rng.choice(CORRECTIONS).format(rng.choice((str(score), WORDS[score], good))))
    elif kind == "refusal":
        verdict = None
        text = spaced(rng, *rng.sample([rng.choice(REFUSALS), rng.choice((bad, aside(rng, bad)))], 2))
    elif kind == "example":
        text = spaced(rng, *rng.sample([rng.choice(EXAMPLES).replace("{}", bad), told(rng, score)], 2))
    elif kind == "twice":
        text = spaced(rng, bad, good)
    elif kind == "more keys":
        more = rng.choice((score, str(score), f"{score}/9", [score], {"score": score}, score + 0.5, True))
        pairs = [("score", decoy), (rng.choice(("final", "corrected", "score_b", "example", *NAMES)), more)]
        text = json.dumps(dict(rng.sample(pairs, 2)))
    else:
        verdict = None
        text = f"{rng.choice(REFUSALS)} <think>Hm.</think>{bad}"
    shape = rng.choice(list(SHAPES.values()))
    return Case("object", kind, shape(text, f"Perhaps {bad}."), verdict, kind in ("asked", "thought"))


def ballots(rng: random.Random) -> Case:
    """A reply that should be a number."""
    score = rng.randrange(1, 10)
    digit = rng.choice((str(score), chr(0xFF10 + score), chr(0x0660 + score)))
    kind = rng.choice(("asked", "compared", "aside", "refusal"))
    if kind == "asked":
        text = rng.choice(("{}", "{}.", " {}\n", "Score: {}", "**{}**", "{}/9", "{} out of 9", "**Score:** {}", "({})"))
        text = text.format(digit)
    elif kind == "compared":
        forms = (
            "at least {}", "less than {}", "not {}", "-{}", "−{}", "{}½", "<{}", ">{}", "≥ {}", "~{}", ".{}", "{}.5",
            "{}0", "{}/10", "{}%", "{}-9", "{} or more", "{}?", "1{}", "mehr als {}", "{}以上", "{}²", "{},",
            "±{}", "{}e1",
        )  # fmt: skip
        text = rng.choice(forms).format(digit)
    elif kind == "aside":
        forms = (
            "Step {}: read",
            "A {} would mean perfect, so",
            "On a scale of {} to",
            "There are {} points",
            "#{} on my list",
        )
        text = rng.choice((*forms, aside(rng, "Hm, {}"))).replace("{}", digit)
    else:
        text = spaced(rng, rng.choice(REFUSALS), digit) if rng.random() < 0.7 else f"{digit} {rng.choice(REFUSALS)}"
    shape = rng.choice(list(SHAPES.values()))
    return Case(
        "ballot", kind, shape(text, f"Perhaps {10 - score}."), score if kind == "asked" else None, kind == "asked"
    )


def chat(message: dict[str, Any]) -> Reply:
    return from_completion({"choices": [{"message": message, "finish_reason": "stop"}], "usage": USAGE})


def anthropic(text: str, thought: str) -> Reply:
    blocks = [SimpleNamespace(type="thinking", thinking=thought), SimpleNamespace(type="text", text=text)]
    counts = {"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    usage = SimpleNamespace(**counts, output_tokens_details=None)
    return read_message(SimpleNamespace(content=blocks, stop_reason="end_turn", stop_details=None, usage=usage))


SHAPES: dict[str, Callable[[str, str], Reply]] = {
    "chat": lambda text, _: chat({"content": text}),
    "reasoning": lambda text, thought: chat({"content": text, "reasoning": thought}),
    "parts": lambda text, thought: chat(
        {"content": [{"type": "thinking", "thinking": thought}, {"type": "text", "text": text}]}
    ),
    "anthropic": anthropic,
}
"""By name: a text and a thought as a vendor sends them."""
READERS = (objects, ballots)


class Says(Client):
    """A model that always gives the same reply."""

    def __init__(self, case: Case) -> None:
        super().__init__("fuzz/says")
        self.case = case

    async def send(self, request: Request) -> Reply:
        return self.case.reply


async def stored(case: Case) -> float | None:
    """The number that a run would store."""
    if case.reader == "object":
        said = await structured_reply(Says(case), ASK, Score)
        return None if said.value is None else float(said.value.score)
    ballot = await ask_ballot(BALLOT, Says(case), ASK, {})
    return None if ballot.value is None else ballot.value.score


async def tried(count: int, seed: int) -> tuple[Counter[tuple[str, str, str]], list[str]]:
    """How often each kind of reply was read, unread or wrong, and what was wrong."""
    rng = random.Random(seed)
    counts: Counter[tuple[str, str, str]] = Counter()
    faults: list[str] = []
    for nth in range(count):
        case = READERS[nth % len(READERS)](rng)
        try:
            number = await stored(case)
            fault = number is not None and (case.verdict is None or not math.isclose(number, case.verdict))
            ending = (
                "wrong" if fault or (case.asked_form and number is None) else "unread" if number is None else "read"
            )
        except Exception as error:
            number, ending = repr(error), "wrong"  # type: ignore[assignment]
        counts[case.reader, case.kind, ending] += 1
        if ending == "wrong":
            faults.append(f"{case.reader}, {case.kind}: {case.reply.content!r} gave {number}, not {case.verdict}")
    return counts, faults
