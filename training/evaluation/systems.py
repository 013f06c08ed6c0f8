"""Evaluates trained systems and baselines: BBQ, and BS, CE and LS on held-out topics.

Every number comes from a run file under OUT/evaluate, made by the studies `bbq`, `answers` and `rubric` as with
`parley run`. Trained models are `hf/OUT/sft` and `hf/OUT/rl`. One model is loaded at a time, in the order of
`evaluate.systems`. Models in `evaluate.models` run on servers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from parley.agents import seed_from
from parley.analysis.gains import family, gain_sentences, gain_table
from parley.analysis.page.render import write
from parley.analysis.page.report import Report, Table
from parley.base.errors import ConfigError
from parley.base.files import new_file
from parley.judging.rubric.report import severity_warning
from parley.reports import cautions
from parley.runs import RunFile, frames
from parley.runs.job import Job
from parley.runs.options import Options
from parley.scenarios import normal, topic_id
from parley.training.adapters import is_adapter, merged_folder
from parley.training.base_model import base_folder, load_model, load_tokenizer, require_packages
from parley.training.config import SYSTEMS, TRAINED, TrainConfig
from parley.training.context import TrainingContext
from parley.training.evaluation.metrics import (
    answers_table,
    bbq_tables,
    cases_table,
    report,
    reward_gains,
    rubric_tables,
)
from parley.training.evaluation.reward_quality import RewardScorer
from parley.training.folders import read_manifest, system_folders
from parley.training.pairs import read_pairs, write_rows
from parley.training.prompts import biases_of, read_prompts

DEFAULT, _, RLDF, RLAIF, COT, FAIRTHINKING = SYSTEMS
METHODS = {DEFAULT: "default", COT: "cot", FAIRTHINKING: "fairthinking"}
"""The method of each system that uses the untrained model."""
GAINS = (
    "The loop's scorer is RLDF's reward model, the outside measure the mean of the judges' BS, CE and LS; both as "
    "quantiles of Default's answers, since a reward has no unit. Clusters are topics."
)
TEMPERATURE = 0.7
"""Sampling temperature of the scored answers."""
RunJob = Callable[[Job], None]
"""Runs a study; ParleyError if it does not complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedSystem:
    """A model with a method, and their name in the tables."""

    name: str
    key: str
    """The system's name in file names."""
    model: str
    method: str
    version: str
    """Changes when the model is retrained, so that earlier runs are not reused."""


def evaluate(config: TrainConfig, run: RunJob) -> Report:
    """Run what is missing, and write the report to OUT/evaluate.

    Args:
        config: Its table [evaluate] says what to run.
        run: Runs a study.
    """
    settings = config.evaluate
    if settings.bbq is None and not settings.judges:
        raise ConfigError("nothing to evaluate: set evaluate.bbq (a folder of BBQ), evaluate.judges, or both")
    if DEFAULT not in settings.systems or len(set(settings.systems)) < len(settings.systems):
        raise ConfigError(f"evaluate.systems must include {DEFAULT}, the baseline, and name no system twice")
    folder = Path(config.out) / "evaluate"
    folder.mkdir(parents=True, exist_ok=True)
    tables: list[Table] = []
    systems = list(evaluated_systems(config))
    missing: list[str] = []
    headline: tuple[str, ...] = ()
    warnings: list[str] = []
    if settings.bbq is not None:
        tables += bbq_tables(_bbq_verdicts(config, systems, folder, run), DEFAULT, seed=config.seed)
    else:
        missing.append("BBQ (evaluate.bbq is not set)")
    if settings.judges:
        answers = _answers(config, systems, folder, run)
        scores = _rubric_verdicts(config, answers, folder, run)
        tables += [answers_table(answers), *rubric_tables(scores, DEFAULT), cases_table(answers, scores, DEFAULT, RLDF)]
        warnings = [warning] if (warning := severity_warning(scores)) else []
        if read_manifest(Path(config.out) / "reward") is None:
            missing.append("gains by the reward model (there is none: parley train reward)")
        else:
            gains = reward_gains(_rewards(config, answers), scores, DEFAULT)
            tables.insert(0, gain_table(gains, GAINS))
            headline = tuple(gain_sentences(gains, "the level of faults", f"quantiles of {DEFAULT}'s answers"))
    else:
        missing.append("BS, CE, LS and gains by the reward model (evaluate.judges is not set)")
    missing += [f"{name} (not in evaluate.systems)" for name in SYSTEMS if name not in settings.systems]
    if RLAIF in settings.systems and RLAIF not in [system.name for system in systems]:
        missing.append("RLAIF (its policy is not trained: parley train rlaif)")
    caution_lines = [*same_family_cautions(config.base, settings.judges), *cautions([config.base, *settings.judges])]
    finished = report(tables, f"RLDF on {config.base}", (*caution_lines, *warnings), tuple(missing), headline)
    write(finished, folder / "report")
    with new_file(folder / "report.json", Path.is_file) as file:
        json.dump(finished.data(), file, indent=2, ensure_ascii=False)
    return finished


def same_family_cautions(base: str, judges: list[str]) -> list[str]:
    """Cautions on judges of the same family as the judged model."""
    same = [judge.split("?")[0] for judge in judges if family(judge) == family(base)]
    if not same:
        return []
    return [f"Same-family judge: {', '.join(same)} scored answers of {base}, a model of its own family."]


def evaluated_systems(config: TrainConfig) -> Iterator[EvaluatedSystem]:
    """The systems of `evaluate.systems`, in order; RLAIF only if its policy is trained."""
    settings, folders = config.evaluate, system_folders(config)
    manifests = {name: read_manifest(folder) for name, folder in folders.items()}
    for name, manifest in manifests.items():
        if manifest is None and name in settings.systems and name != RLAIF and name not in settings.models:
            raise ConfigError(
                f"there is no finished model at {folders[name]}: run `parley train {TRAINED[name]}` first"
            )
    for name in settings.systems:
        if name in METHODS:
            yield EvaluatedSystem(
                name=name,
                key=name.lower(),
                model=settings.models.get(name) or settings.models.get(DEFAULT) or base_name(config),
                method=METHODS[name],
                version=config.base,
            )
        elif manifests[name] is not None or name in settings.models:
            yield EvaluatedSystem(
                name=name,
                key=TRAINED[name].partition("/")[0],
                model=settings.models.get(name) or model_name(folders[name], config),
                method="default",
                version=json.dumps(manifests[name], sort_keys=True),
            )


def model_name(folder: Path, config: TrainConfig) -> str:
    """A trained folder's name as a model. Merges adapters if necessary."""
    if is_adapter(folder):
        require_packages()
        base = base_folder(config.base)
        folder = merged_folder(folder, base, load_tokenizer(base, config))
    return f"hf/{folder}"


def merge(config: TrainConfig) -> list[str]:
    """Write the whole models of finished stages with adapters; returns their names as models."""
    out = Path(config.out)
    folders = [out / folder for folder in TRAINED.values()]
    adapters = [folder for folder in folders if is_adapter(folder) and read_manifest(folder)]
    if not adapters:
        raise ConfigError(f"there is no finished policy with adapters in {config.out}")
    return [model_name(folder, config) for folder in adapters]


def base_name(config: TrainConfig) -> str:
    """The untrained model's name, in the trained models' format: quantized weights would be a second difference."""
    folder = Path(config.out) / "base"
    if not (folder / "tokenizer_config.json").is_file():
        require_packages()
        source = base_folder(config.base)
        tokenizer = load_tokenizer(source, config)
        load_model(source, tokenizer).save_pretrained(folder)
        tokenizer.save_pretrained(folder)  # last: its config marks the folder as complete
    return model_name(folder, config)


def _run_study(study: str, study_config: dict[str, Any], path: Path, budget: float | None, run: RunJob) -> pd.DataFrame:
    """The verdicts of a study."""
    run(Job.make(study, study_config, Options(out=str(path), budget_cost=budget)))
    with RunFile.open(path) as file:
        return frames.verdicts(file)


def _run_path(folder: Path, study: str, system: EvaluatedSystem, settings: dict[str, Any]) -> Path:
    """A file name with a hash of the model's version and the settings."""
    digest = hashlib.sha256(json.dumps([system.version, settings], sort_keys=True).encode()).hexdigest()[:8]
    return folder / f"{study}-{system.key}-{digest}.sqlite"


def _bbq_verdicts(config: TrainConfig, systems: list[EvaluatedSystem], folder: Path, run: RunJob) -> pd.DataFrame:
    settings = config.evaluate
    categories = None if settings.categories in (None, ["all"]) else settings.categories
    verdicts = []
    for system in systems:
        study_config = {
            "data": settings.bbq,
            "model": [system.model],
            "method": [system.method],
            "categories": categories,
            "limit": settings.bbq_limit,
            "max_tokens": settings.max_tokens,
            "temperature": 0.0,
            "seed": config.seed,
        }
        path = _run_path(folder, "bbq", system, study_config)
        frame = _run_study("bbq", study_config, path, settings.budget_cost, run)
        verdicts.append(frame.assign(system=system.name))
    return pd.concat(verdicts, ignore_index=True)


def held_out_topics(config: TrainConfig) -> list[str]:
    """Topics that no stage was trained on, drawn by the seed."""
    prompts = read_prompts(config, read_pairs(config)).held_out()
    topics = sorted(prompts, key=lambda topic: seed_from("held out", config.seed, normal(topic)))
    return topics[: config.evaluate.topics]


def _answers(config: TrainConfig, systems: list[EvaluatedSystem], folder: Path, run: RunJob) -> pd.DataFrame:
    """The answers of each system about the held-out topics: system, topic, text."""
    settings = config.evaluate
    topics = folder / "topics.txt"
    with new_file(topics, Path.is_file) as file:
        file.writelines(f"{topic}\n" for topic in held_out_topics(config))
    rows: list[dict[str, str]] = []
    for system in systems:
        study_config = {
            "topics_from": str(topics),
            "model": [system.model],
            "method": [system.method],
            "max_tokens": settings.max_tokens,
            "temperature": TEMPERATURE,
            "seed": config.seed,
        }
        path = _run_path(folder, "answers", system, {**study_config, "topics": topics.read_text("utf-8")})
        verdicts = _run_study("answers", study_config, path, settings.budget_cost, run)
        for row in verdicts.itertuples():
            rows.append({"system": system.name, "topic": str(row.topic), "text": str(row.text or "")})
    return pd.DataFrame(rows, columns=["system", "topic", "text"])


def _rewards(config: TrainConfig, answers: pd.DataFrame) -> pd.DataFrame:
    """The reward model's score of each answer that is not empty: system, topic, reward."""
    context = TrainingContext.open(config)
    scorer = RewardScorer.load(context)
    written = answers[answers["text"] != ""]
    prompts = [context.prompts.held_out()[str(topic)] for topic in written["topic"]]
    return written[["system", "topic"]].assign(reward=scorer.score_texts(prompts, list(written["text"])))


def _rubric_verdicts(config: TrainConfig, answers: pd.DataFrame, folder: Path, run: RunJob) -> pd.DataFrame:
    """The judges' verdicts. Empty answers cannot be scored, so their topics are missing for that system."""
    rows = [
        {"id": f"{row.system}/{topic_id(str(row.topic))}", "topic": row.topic, "system": row.system, "text": row.text}
        for row in answers.itertuples()
        if row.text
    ]
    judges, examples = config.evaluate.judges, {"examples": True} if config.evaluate.examples else {}
    scored_by = str(judges) + (str(examples) if examples else "")
    digest = hashlib.sha256((json.dumps(rows, ensure_ascii=False) + scored_by).encode()).hexdigest()[:8]
    path = folder / f"answers-{digest}.jsonl"
    write_rows(path, rows)
    study_config = {"data": str(path), "model": judges, "by": "system", "seed": config.seed, **examples}
    run_path = folder / f"rubric-{digest}.sqlite"
    frame = _run_study("rubric", study_config, run_path, config.evaluate.budget_cost, run)
    topic_of = {row["id"]: row["topic"] for row in rows}
    topics = [str(topic_of[str(item)]) for item in frame["item"]]
    bias_of = biases_of(set(topics), read_pairs(config))
    return frame.assign(system=frame["group"].astype(str), topic=topics, bias=[bias_of[topic] for topic in topics])
