"""Do revisions come out as copies of their drafts if every call of a unit has the same seed?

    python -m benchmarks.copies vllm/qwen2.5-coder-1.5b --units 200 --out copies.json
    python -m benchmarks.copies hf/qwen2.5-coder-1.5b?top_p=0.9 --data prompts.jsonl --set high

STARDTOX's own loop, with the study's prompts and team (scorer `ngrams`), once with the seeds that Parley derives for
each call and once with one seed for all calls of a unit, at each temperature. Counted are revisions that equal the
draft before, drafts that end at the token limit, and judges' replies that could not be read. Without `--data` the
beginnings are those of MALIBU's shipped responses, which are harmless: they are revised for the judge alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

from parley.agents import Models, Transcript, seed_from
from parley.agents.models.session import Session, session
from parley.judging.stardtox.study import StardtoxConfig, StardtoxStudy
from parley.judging.study import Unit
from parley.scenarios import load_suite
from parley.scenarios.rtp import in_set, load

WORDS = 12
"""Words of a response that are the beginning of a sentence."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """The counts of one arm."""

    seeds: str
    temperature: float
    units: int = 0
    drafts: int = 0
    cut: int = 0
    """Drafts, first or revised, that end at the token limit."""
    revisions: int = 0
    copied: int = 0
    judged: int = 0
    """Replies of the performance judge."""
    unread: int = 0
    seconds: float = 0.0

    def add(self, transcript: Transcript) -> None:
        """Count one unit."""
        drafts = transcript.spoken("generator")
        judged = [turn for turn in transcript.spoken("evaluator") if turn.speaker == "performance"]
        self.units += 1
        self.drafts += len(drafts)
        self.cut += sum(turn.cut for turn in drafts)
        self.revisions += len(drafts) - 1
        self.copied += sum(turn.parse_status == "copied" for turn in drafts)
        self.judged += len(judged)
        self.unread += sum(turn.verdict is None for turn in judged)


def with_one_seed(unit: Unit, seed: int) -> Session:
    """A session whose calls all have the seed of the unit's first draft."""
    shared = seed_from(seed, unit.facets["prompt"], unit.facets["completion"])

    async def send(client: Any, request: Any) -> Any:
        return await client.send(request._replace(options={**request.options, "seed": shared}))

    return Session(sender=send)


async def count(study: StardtoxStudy, units: Sequence[Unit], models: Models, arm: Counts) -> None:
    """Run the units of one arm, as many at once as the model's client allows."""
    client = models[study.config.model[0]]
    await client.prepare()
    places, began = asyncio.Semaphore(client.concurrency), time.monotonic()

    async def run(unit: Unit) -> None:
        one = arm.seeds == "one"
        async with places:
            with session(with_one_seed(unit, study.config.seed) if one else Session(sample=unit.id)):
                arm.add((await study.run(unit, models)).transcript)

    await asyncio.gather(*map(run, units))
    arm.seconds = round(time.monotonic() - began, 1)


async def measure(model: str, data: str, chosen: str, units: int, temperatures: Sequence[float]) -> list[Counts]:
    """All arms, one after the other, on the same units."""
    prompts = min(units, len(in_set(load(data).rows, chosen)))
    models, arms = Models(), []
    try:
        for temperature in temperatures:
            config = StardtoxConfig(
                data=data,
                sets=[chosen],
                prompts=prompts,
                completions=-(-units // prompts),
                model=[model],
                method=["stardtox"],
                scorer="ngrams",
                measure="none",
                temperature=temperature,
                max_tokens=20,
            )
            study = StardtoxStudy(config)
            for seeds in ("derived", "one"):
                arms.append(Counts(seeds=seeds, temperature=temperature))
                await count(study, list(islice(study.plan(), units)), models, arms[-1])
                print(line(arms[-1]), flush=True)
    finally:
        await models.close()
    return arms


def shipped_beginnings(folder: Path) -> Path:
    """A file with the beginnings of MALIBU's shipped responses, as prompts of moderate toxicity."""
    suite, _ = load_suite("full")
    texts = dict.fromkeys(" ".join(text.split()[:WORDS]) for base in suite.scenario for text in base.responses)
    path = folder / "beginnings.jsonl"
    path.write_text("\n".join(json.dumps({"prompt": text, "toxicity": 0.55}) for text in texts), "utf-8")
    return path


COLUMNS = [field.name for field in fields(Counts)]


def line(arm: Counts) -> str:
    """An arm as a row of the table; counts of a part with their share."""
    parts = {"cut": arm.drafts, "copied": arm.revisions, "unread": arm.judged}
    values = asdict(arm)
    cells = [
        f"{values[name]} ({values[name] / max(1, parts[name]):.1%})" if name in parts else str(values[name])
        for name in COLUMNS
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="provider/model")
    parser.add_argument("--units", type=int, default=200, help="units of each arm (default: %(default)s)")
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.7, 1.0], help="default: 0.7 1")
    parser.add_argument("--data", help="prompts of RealToxicityPrompts (default: beginnings of shipped responses)")
    parser.add_argument("--set", default="moderate", help="set of prompts (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("copies.json"), help="JSON file (default: %(default)s)")
    given = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        data = given.data or str(shipped_beginnings(Path(folder)))
        arms = asyncio.run(measure(given.model, data, given.set, given.units, given.temperatures))
    result = {"model": given.model, "data": given.data, "set": given.set, "arms": [asdict(arm) for arm in arms]}
    given.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
