"""Every study as a command with a given number of units, and the small files it reads.

for trial in all_trials(units=1000):
    trial.prepare(folder)
    parley(*trial.command(model))
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bbq_rows import bbq_row
from tests.own_study import STUDY
from tests.panels import RUN_PANEL

SCORER = '''
from parley.judging.toxicity import Toxicity

class Steady:
    """The same score for the same text, always."""

    name, version = "steady", "1"

    async def score(self, texts):
        return [Toxicity(sum(text.encode("utf-8", "replace")) % 100 / 100) for text in texts]

    async def close(self):
        pass
'''
OWN = {
    "own.py": STUDY
    + """
class Own(Study):
    class Config(BaseModel):
        model: str
        size: int
        seed: int = 0

    def prompts(self):
        return {"greet": "Greet guest {n}."}

    def plan(self):
        return (Unit(f"guest/{n}", {"guest": n % 5}) for n in range(self.config.size))

    async def run(self, unit, models):
        hosts = [Persona("Ada", "You are Ada."), Persona("Ben", "You are Ben.")]
        table = Debate(hosts, model=models[self.config.model], rounds=1)
        talk = await table.converse(f"Greet guest {unit.id}.")
        words = [Verdict.from_turn(t, "length", value=float(len(t.text))) for t in talk.spoken()]
        return Outcome(talk, tuple(words))
"""
}


@dataclass(frozen=True)
class Trial:
    """A study to test: its flags, and the files it reads, by name."""

    name: str
    flags: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)

    def prepare(self, folder: Path) -> None:
        for name, text in self.files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)

    def command(self, model: str) -> tuple[str, ...]:
        return ("run", *self.flags, "--model", model, "--seed", "3", "--quiet")


def jsonl(rows: Iterable[Any]) -> str:
    return "\n".join(map(json.dumps, rows))


def bbq_rows(size: int) -> dict[str, str]:
    return {"bbq/Age.jsonl": jsonl(bbq_row(n, question_index=str(n // 4 + 1)) for n in range(size))}


def squad_questions(size: int) -> dict[str, str]:
    golds = [[{"text": f"remark {n}", "answer_start": 0}] * (n % 3 > 0) for n in range(size)]
    asked = [{"id": f"q{n}", "question": f"What is {n}?", "answers": gold} for n, gold in enumerate(golds)]
    paragraph = {"context": "A text with remarks.", "qas": asked}
    return {"dev.json": json.dumps({"data": [{"title": "T", "paragraphs": [paragraph]}]})}


def toxic_prompts(size: int) -> dict[str, str]:
    rows = ({"id": f"p{n}", "prompt": f"The referee said {n}", "toxicity": 0.55} for n in range(size))
    return {"prompts.jsonl": jsonl(rows), "scorer.py": SCORER}


def topics(size: int) -> dict[str, str]:
    return {"topics.txt": "".join(f"{7919 * n} people and the {n} rules of work\n" for n in range(size))}


def texts_to_score(size: int) -> dict[str, str]:
    rows = ({"text": f"Text {n} about work.", "topic": "Work", "method": "ab"[n % 2]} for n in range(size))
    return {"texts.jsonl": jsonl(rows)}


def trials(units: int) -> list[Trial]:
    """Most studies, about `units` units in total: many of one call, few of long conversations."""
    few, some, many = max(2, units // 400), max(4, units // 80), max(4, units // 16)
    toxic = ("--data", "prompts.jsonl", "--sets", "moderate", "--completions", "1", "--scorer", "scorer.py:Steady")
    bbq = ("bbq", "--data", "bbq")
    multi = "fairthinking,self-debias-reprompting,stardtox,mabrf"
    fitness = ("--scenarios", "fitness", "--per-base", "1", "--identities", "gender")
    malibu = (*RUN_PANEL[1:], "--cells", "all", "--suite", "full", *fitness)
    rldf = ("rldf", "--design", "paper", "--no-check", "--rounds", "2", "--topics-from", "topics.txt")
    return [
        Trial("malibu", (*malibu, "--repeats", str(max(1, units // 400)))),
        Trial("rldf", (*rldf, "--topics", str(some)), topics(some)),
        Trial("bbq, one call", (*bbq, "--method", "default", "--repeats", "4"), bbq_rows(many)),
        Trial("bbq, several calls", (*bbq, "--method", multi), bbq_rows(few)),
        Trial("stardtox", ("stardtox", *toxic, "--prompts", str(few)), toxic_prompts(few)),
        Trial("squad", ("squad", "--data", "dev.json", "--repeats", "4"), squad_questions(many)),
        Trial("answers", ("answers", "--topics-from", "topics.txt", "--method", "default,cot"), topics(2 * many)),
        Trial("framing", ("framing", "--topics-from", "topics.txt", "--topics", str(some)), topics(some)),
        Trial("rubric", ("rubric", "--data", "texts.jsonl", "--by", "method", "--rubrics", "bs"), texts_to_score(some)),
        Trial("a user's own", ("own.py:Own", "--size", str(3 * many)), OWN),
    ]


def all_trials(units: int) -> list[Trial]:
    """Every study that Parley ships, and a user's own."""
    some = str(max(4, units // 80))
    return [
        *trials(units),
        Trial("rlaif", ("rlaif", "--topics-from", "topics.txt"), topics(int(some))),
        Trial("topics", ("topics", "--bias", "age", "--count", some)),
        Trial("malibu-derive", ("malibu-derive", "--limit", some, "--count", "2")),
        Trial("malibu-respond", ("malibu-respond", "--limit", some, "--anew")),
    ]
