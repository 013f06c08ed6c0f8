"""Whether training helped: BBQ, and BS, CE and LS on held-out topics, before and after and beside the baselines.

Every number comes from a run file under OUT/evaluate, made by the studies `bbq`, `answers` and `rubric` as anyone would
run them; the trained models are `local/OUT/sft` and `local/OUT/rl`, or `hf/…` with `answers = "hf"`. One
model is loaded at a time, in the order of `evaluate.systems`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.agents import ConfigError, ParleyError, seed_from
from parley.execute import Job, Options
from parley.reports import cautions
from parley.runs import RunFile
from parley.scenarios import normal, topic_id
from parley.training.config import SYSTEMS, TrainConfig
from parley.training.pairs import read_pairs
from parley.training.prompts import read_topics
from parley.training.stage import read_manifest

if TYPE_CHECKING:
    import pandas as pd

    from parley.analysis.reporting.report import Report

DEFAULT, SFT, RLDF, RLAIF, COT, FAIRTHINKING = SYSTEMS
ASKED = {DEFAULT: "default", COT: "cot", FAIRTHINKING: "fairthinking"}
"""How the untrained model is asked."""
KEYS = {SFT: "sft", RLDF: "rl", RLAIF: "rlaif"}
"""The stages that train a system."""
Go = Callable[[Job], None]
"""How a run is carried out; the command line shows its progress."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A model with the way it is asked, and the name of both together in the tables."""

    key: str
    model: str
    method: str
    system: str
    version: str
    """Changes when the model is trained again, so that its old runs are not taken for its new ones."""


def go_silently(job: Job) -> None:
    result = asyncio.run(job.execute())
    if not result.complete:
        why = result.stopped or result.first_error or "units failed"
        raise ParleyError(f"{job.path} is not complete ({why}); the same command goes on")


def evaluate(config: TrainConfig, go: Go = go_silently) -> Report:
    """Runs what is not run yet, and makes the report of it all."""
    from parley.analysis.reporting.render import write
    from parley.training.evaluation.metrics import answers_table, bbq_tables, report, rubric_tables

    chosen = config.evaluate
    if chosen.bbq is None and not chosen.judges:
        raise ConfigError("nothing to evaluate by: set evaluate.bbq (a folder of BBQ), evaluate.judges, or both")
    if DEFAULT not in chosen.systems or len(set(chosen.systems)) < len(chosen.systems):
        raise ConfigError(f"evaluate.systems: {DEFAULT}, which the others are compared with, and each of them once")
    folder = Path(config.out) / "evaluate"
    folder.mkdir(parents=True, exist_ok=True)
    field = list(contestants(config))
    tables, missing = [], []
    if chosen.bbq is not None:
        tables += bbq_tables(_bbq(config, field, folder, go), DEFAULT, seed=config.seed)
    else:
        missing.append("BBQ (evaluate.bbq is not set)")
    if chosen.judges:
        said = _answers(config, field, folder, go)
        tables += [answers_table(said), *rubric_tables(_rubric(config, said, folder, go), DEFAULT, seed=config.seed)]
    else:
        missing.append("BS, CE and LS (evaluate.judges is not set)")
    missing += [f"{name} (not in evaluate.systems)" for name in SYSTEMS if name not in chosen.systems]
    if RLAIF in chosen.systems and RLAIF not in [one.system for one in field]:
        missing.append("RLAIF (no policy of it was trained: parley train rlaif)")
    known = cautions([config.base, *chosen.judges])
    made = report(tables, f"RLDF on {config.base}", tuple(known), tuple(missing))
    write(made, folder / "report")
    (folder / "report.json").write_text(json.dumps(made.data(), indent=2, ensure_ascii=False), "utf-8")
    return made


def contestants(config: TrainConfig) -> Iterator[Contestant]:
    """The systems that were asked for, in their order; RLAIF only where there is a policy of it."""
    out, chosen = Path(config.out), config.evaluate
    folders = {
        SFT: Path(config.begin or out / "sft"),
        RLAIF: Path(chosen.rlaif or out / "rlaif" / "rl"),
        RLDF: out / "rl",
    }
    manifests = {name: read_manifest(folder) for name, folder in folders.items()}
    for name, manifest in manifests.items():
        if manifest is None and name in chosen.systems and (name != RLAIF or chosen.rlaif is not None):
            raise ConfigError(f"there is no finished model at {folders[name]}: parley train {KEYS[name]}")
    for name in chosen.systems:
        if name in ASKED:
            yield Contestant(name.lower(), base_name(config), ASKED[name], name, config.base)
            continue
        if (manifest := manifests[name]) is None:
            continue
        version = json.dumps(manifest, sort_keys=True)
        yield Contestant(KEYS[name], model_name(folders[name], config), "default", name, version)


def model_name(folder: Path, config: TrainConfig) -> str:
    """How a trained model is asked. One that was trained without model.gguf gets it here, where it is needed."""
    if config.answers == "local" and not (folder / "model.gguf").is_file():
        from parley.training.base import need_packages
        from parley.training.gguf_file import write_gguf

        need_packages()
        write_gguf(folder, short=config.gguf_type == "f16")
    return f"{config.answers}/{folder}"


def base_name(config: TrainConfig) -> str:
    """The untrained model, written as the trained ones are: an embedded file with its few bits would differ from them
    by more than training."""
    folder = Path(config.out) / "base"
    if not (folder / "tokenizer_config.json").is_file():
        from parley.training.base import base_folder, load_model, load_tokenizer, need_packages

        need_packages()
        begins = base_folder(config.base)
        tokenizer = load_tokenizer(begins, config)
        load_model(begins, tokenizer).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return model_name(folder, config)


def _run(target: str, config: dict[str, Any], path: Path, budget: float | None, go: Go) -> RunFile:
    """A run under a name that its model's version and its settings are part of."""
    go(Job.make(target, config, Options(out=str(path), budget_cost=budget)))
    return RunFile.open(path)


def _path(folder: Path, study: str, one: Contestant, config: dict[str, Any]) -> Path:
    made_from = json.dumps([one.version, config], sort_keys=True)
    return folder / f"{study}-{one.key}-{hashlib.sha256(made_from.encode()).hexdigest()[:8]}.sqlite"


def _verdicts(file: RunFile, one: Contestant) -> pd.DataFrame:
    from parley import frames

    with file:
        frame = frames.verdicts(file)
    return frame.assign(system=one.system)


def _bbq(config: TrainConfig, field: list[Contestant], folder: Path, go: Go) -> pd.DataFrame:
    import pandas as pd

    chosen = config.evaluate
    categories = None if chosen.categories in (None, ["all"]) else chosen.categories
    found = []
    for one in field:
        asked = {
            "data": chosen.bbq,
            "model": [one.model],
            "method": [one.method],
            "categories": categories,
            "limit": chosen.bbq_limit,
            "max_tokens": chosen.bbq_max_tokens,
            "temperature": 0.0,
            "seed": config.seed,
        }
        found.append(_verdicts(_run("bbq", asked, _path(folder, "bbq", one, asked), chosen.budget_cost, go), one))
    return pd.concat(found, ignore_index=True)


def held_out_topics(config: TrainConfig) -> list[str]:
    """Topics nothing was trained on, drawn by the seed."""
    topics = read_topics(config, read_pairs(config)).held_out()
    return sorted(topics, key=lambda topic: seed_from("held out", config.seed, normal(topic)))[: config.evaluate.topics]


def _answers(config: TrainConfig, field: list[Contestant], folder: Path, go: Go) -> pd.DataFrame:
    """What each system says about the held-out topics: system, topic, text."""
    import pandas as pd

    chosen = config.evaluate
    listed = folder / "topics.txt"
    listed.write_text("".join(f"{topic}\n" for topic in held_out_topics(config)), "utf-8")
    rows: list[dict[str, str]] = []
    for one in field:
        asked = {
            "topics_from": str(listed),
            "model": [one.model],
            "method": [one.method],
            "max_tokens": chosen.max_tokens,
            "temperature": chosen.temperature,
            "seed": config.seed,
        }
        path = _path(folder, "answers", one, {**asked, "topics": listed.read_text("utf-8")})
        for row in _verdicts(_run("answers", asked, path, chosen.budget_cost, go), one).itertuples():
            rows.append({"system": str(row.system), "topic": str(row.topic), "text": str(row.text or "")})
    return pd.DataFrame(rows, columns=["system", "topic", "text"])


def _rubric(config: TrainConfig, said: pd.DataFrame, folder: Path, go: Go) -> pd.DataFrame:
    """The judges' verdicts; an answer that is empty cannot be scored, and is missing from its system's topics."""
    from parley import frames

    rows = [
        {"id": f"{row.system}/{topic_id(str(row.topic))}", "topic": row.topic, "system": row.system, "text": row.text}
        for row in said.itertuples()
        if row.text
    ]
    judges = config.evaluate.judges
    digest = hashlib.sha256((json.dumps(rows, ensure_ascii=False) + str(judges)).encode()).hexdigest()[:8]
    answers = folder / f"answers-{digest}.jsonl"
    answers.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    asked = {"file": str(answers), "model": judges, "by": "system", "seed": config.seed}
    file = _run("rubric", asked, folder / f"rubric-{digest}.sqlite", config.evaluate.budget_cost, go)
    with file:
        frame = frames.verdicts(file)
    topic_of = {row["id"]: row["topic"] for row in rows}
    return frame.assign(system=frame["group"].astype(str), topic=[topic_of[str(item)] for item in frame["item"]])
