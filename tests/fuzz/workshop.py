"""A folder of small files, valid and invalid, for commands that are wrong: runs of every study, data, configs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import parley
from parley.runs.notes import NotesFile
from tests.fuzz import seeds
from tests.fuzz.strategies import as_jsonl, as_toml, as_yaml

MODEL = "sim/judge"
RUNS: dict[str, dict[str, Any]] = {
    "malibu": {"suite": "tiny", "rounds": 1, "identities": ["gender"]},
    "bbq": {"data": "bbq"},
    "squad": {"data": "squad.json"},
    "rldf": {"design": "paper", "check": False, "topics_from": "topics.txt", "topics": 2, "rounds": 2},
    "framing": {"topics_from": "topics.txt", "topics": 2},
    "rubric": {"data": "texts.jsonl", "by": "group"},
    "stardtox": {"data": "rtp.jsonl", "sets": ["moderate"], "prompts": 2, "completions": 1, "method": ["default"]},
}
"""A small run of each study that has its own report."""
STUDY = """
from parley.judging.malibu.study import Malibu

class Mine(Malibu):
    name = "mine"
"""


def data_files() -> dict[str, str]:
    """Content by file name."""
    config = as_toml({**seeds.CONFIG, "model": MODEL})
    return {
        "bbq/Age.jsonl": as_jsonl(seeds.BBQ),
        "nothing/Age.jsonl": "",
        "squad.json": json.dumps(seeds.SQUAD),
        "rtp.jsonl": as_jsonl([{"id": f"p{n}", "prompt": "So I", "toxicity": 0.55} for n in range(4)]),
        "texts.jsonl": as_jsonl(seeds.TEXTS),
        "topics.txt": "Should older people drive at night?\nWho should care for whom?\n",
        "suite.toml": as_toml(seeds.SUITE),
        "config.toml": config,
        "config.yaml": as_yaml({**seeds.CONFIG, "model": MODEL}),
        "pairs.jsonl": as_jsonl(seeds.PAIRS),
        "study.py": STUDY,
        "raises.py": "raise RuntimeError('boom')\n",
        "leaves.py": "raise SystemExit(3)\n",
    }


def prepare(folder: Path) -> None:
    """Write all files. The folder is the current one meanwhile."""
    previous = Path.cwd()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    try:
        for name, content in data_files().items():
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_text(content, "utf-8")
        for study, config in {**RUNS, "study.py:Mine": RUNS["malibu"]}.items():
            name = "mine" if ":" in study else study
            finished = parley.run(
                study, options=parley.Options(cache=False), out=f"{name}.sqlite", model=MODEL, **config
            )
            assert finished.complete, (study, finished.first_error)
        notes = NotesFile(Path("malibu.sqlite"))
        notes.add(first_unit(Path("malibu.sqlite")), None, "me", "odd", "look at this")
    finally:
        os.chdir(previous)


def first_unit(run: Path) -> str:
    from parley.runs import RunFile

    with RunFile.open(run) as file:
        return str(file.rows("SELECT id FROM units WHERE status = 'done' ORDER BY position LIMIT 1")[1][0][0])
