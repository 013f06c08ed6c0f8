"""A folder of small files, sound and not, that random command lines name: runs of every study, logs, data, configs."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import parley
from parley.interop import read_inspect, write_run
from parley.viewer.notes import Notes
from tests.fuzz import mutation, seeds

MODEL = "sim/judge"
RUNS: dict[str, dict[str, Any]] = {
    "malibu": {"suite": "quick", "rounds": 1, "identities": ["gender"]},
    "bbq": {"data": "bbq"},
    "squad": {"data": "squad.json"},
    "rldf": {"topics_from": "topics.txt", "topics": 2, "rounds": 2},
    "framing": {"topics_from": "topics.txt", "topics": 2},
    "rubric": {"file": "texts.jsonl", "by": "group"},
    "injection": {"suite": "full", "responses": 2, "kinds": ["order"], "asks": [10]},
    "stardtox": {"data": "rtp.jsonl", "sets": ["moderate"], "prompts": 2, "completions": 1, "method": ["default"]},
}
"""A run of each study that has a report of its own, as small as it gets."""
STUDY = """
from parley.judging.malibu import Malibu

class Mine(Malibu):
    name = "mine"
"""


def lines(rows: list[Any]) -> str:
    return "".join(mutation.as_json(row) + "\n" for row in rows)


def data_files() -> dict[str, str | bytes]:
    """What is only read, by name."""
    config = mutation.as_toml({**seeds.CONFIG, "model": MODEL})
    return {
        "bbq/Age.jsonl": lines(seeds.BBQ),
        "nothing/Age.jsonl": "",
        "bom/Age.jsonl": "\ufeff" + lines(seeds.BBQ),
        "hard.csv": mutation.as_csv(seeds.BBQ_CSV),
        "squad.json": json.dumps(seeds.SQUAD),
        "answers.json": json.dumps({"q0": "", "q1": "1066", "q2": "x"}),
        "predictions.jsonl": lines(seeds.PREDICTIONS),
        "rtp.jsonl": lines([{"id": f"p{n}", "prompt": "So I", "toxicity": 0.55} for n in range(4)]),
        "texts.jsonl": lines(seeds.TEXTS),
        "texts.txt": "A kind word.\nAnother one.\n",
        "topics.txt": "Should older people drive at night?\nWho should care for whom?\n",
        "suite.toml": mutation.as_toml(seeds.SUITE),
        "config.toml": config,
        "config.yaml": mutation.as_yaml({**seeds.CONFIG, "model": MODEL}),
        "pairs.jsonl": lines(seeds.PAIRS),
        "inspect.json": json.dumps(seeds.INSPECT),
        "autogen.json": json.dumps(seeds.AUTOGEN),
        "autogen.jsonl": lines([seeds.AUTOGEN, seeds.AUTOGEN["messages"]]),
        "plan.json": json.dumps({"calls": 80, "units": 10, "prompt_tokens": 900, "completion_tokens": 90}),
        "study.py": STUDY,
        "raises.py": "raise RuntimeError('boom')\n",
        "leaves.py": "raise SystemExit(3)\n",
        "empty.jsonl": "",
        "empty.sqlite": "",
        "binary.sqlite": bytes(range(256)) * 8,
        "surrogates.jsonl": '{"id": 1, "text": "half \\ud800", "score": 0.5}\n',
    }


def write_eval(path: Path, log: dict[str, Any]) -> None:
    """A log of Inspect's as an archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({key: value for key, value in log.items() if key != "samples"}))
        for number, sample in enumerate(log["samples"]):
            archive.writestr(f"samples/{number}.json", json.dumps(sample))


def prepare(place: Path) -> None:
    """Write all of it; the current folder becomes the place for that time."""
    before = Path.cwd()
    place.mkdir(parents=True, exist_ok=True)
    os.chdir(place)
    try:
        for name, content in data_files().items():
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        write_eval(Path("inspect.eval"), seeds.INSPECT)
        for study, config in RUNS.items():
            done = parley.run(study, options=parley.Options(cache=False), out=f"{study}.sqlite", model=MODEL, **config)
            assert done.complete, (study, done.first_error)
        write_run(read_inspect(Path("inspect.json")), Path("imported.sqlite"))
        notes = Notes(Path("malibu.sqlite"))
        notes.add(first_unit(Path("malibu.sqlite")), None, "me", "odd", "look at this")
        content = Path("malibu.sqlite").read_bytes()
        Path("cut.sqlite").write_bytes(content[: len(content) // 2])
    finally:
        os.chdir(before)


def first_unit(run: Path) -> str:
    from parley.runs import RunFile

    with RunFile.open(run) as file:
        return str(file.rows("SELECT id FROM units WHERE status = 'done' ORDER BY position LIMIT 1")[1][0][0])
