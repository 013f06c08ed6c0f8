"""RLAIF, the baseline without debates: a model labels the pairs, then the same reward model and RL from the same SFT.

Writes OUT/rlaif/pairs (a dataset as `parley export` writes it), OUT/rlaif/reward and OUT/rlaif/rl.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from parley.base.errors import ConfigError, ParleyError
from parley.base.files import MANIFEST, new_file
from parley.judging.rldf.answers import NEUTRAL
from parley.runs import RunFile, frames
from parley.runs.job import Job
from parley.runs.options import Options
from parley.training.config import TrainConfig
from parley.training.device import in_main_process
from parley.training.evaluation.systems import RunJob, model_name
from parley.training.folders import read_manifest, system_folders
from parley.training.pairs import message, read_pairs, write_rows
from parley.training.prompts import PromptSplits, read_prompts

MAX_TOKENS = 160
"""Maximum tokens of an answer for the labeller."""


def label_pairs(config: TrainConfig, run: RunJob) -> TrainConfig:
    """Have the labeller compare two answers per topic; returns the config that trains on the pairs.

    Args:
        config: RLDF's config. Its table [rlaif] names the labeller; its SFT stage must be done.
        run: Runs the study that labels.
    """
    if config.rlaif.labeller is None:
        raise ConfigError("RLAIF needs a model that labels pairs: set rlaif.labeller")
    sft = system_folders(config)["SFT"]
    if read_manifest(sft) is None:
        raise ConfigError(f"there is no finished sft stage at {sft}: run `parley train sft` first")
    folder = Path(config.out) / "rlaif"
    in_main_process(lambda: _label(config, run, sft, folder))
    # Limits on the debates' data do not apply to the labelled pairs: all their topics are used.
    return config.model_copy(
        update={
            "data": f"{folder}/pairs",
            "out": str(folder),
            "sft_model_path": str(sft),
            "rl": config.rl.model_copy(update={"topics_from": "debates"}),
            **dict.fromkeys(("pairs", "topics", "rounds", "roles")),
        }
    )


def _label(config: TrainConfig, run: RunJob, sft: Path, folder: Path) -> None:
    settings = config.rlaif
    folder.mkdir(parents=True, exist_ok=True)
    prompts = read_prompts(config, read_pairs(config))
    split_of = {
        **dict.fromkeys(list(prompts.train)[: settings.topics], "train"),
        **dict.fromkeys(prompts.validation, "validation"),
        **dict.fromkeys(prompts.test, "test"),
    }
    topics = folder / "topics.txt"
    with new_file(topics, Path.is_file) as file:
        file.writelines(f"{topic}\n" for topic in split_of)
    study_config = {
        "topics_from": str(topics),
        "model": model_name(sft, config),
        "labeller": settings.labeller,
        "temperature": 1.0,  # the two answers of a pair must differ
        "max_tokens": MAX_TOKENS,
        "seed": config.seed,
    }
    path = folder / "labels.sqlite"
    run(Job.make("rlaif", study_config, Options(out=str(path))))
    _write_pairs(path, split_of, folder / "pairs", prompts)


def _write_pairs(path: Path, split_of: dict[str, str], folder: Path, prompts: PromptSplits) -> None:
    """Write the pairs with a preference as TRL's rows, with the topics of RLDF's policy."""
    with RunFile.open(path) as file:
        verdicts = frames.verdicts(file)
    rows: dict[str, list[dict[str, Any]]] = {"train": [], "validation": [], "test": []}
    for unit, of_unit in verdicts.groupby("unit", sort=False, observed=True):
        verdict_of = {(str(row.metric), str(row.subject), int(row.round)): row for row in of_unit.itertuples()}
        label = verdict_of.get(("preference", "", 4))
        preference = float(label.value) if label else 0.5
        if preference == 0.5:  # a tie, or a label that could not be read
            continue
        texts = [str(verdict_of["answer", str(number), number].text) for number in (1, 2)]
        chosen = int(preference > 0.5)
        topic = str(of_unit["topic"].iloc[0])
        rows[split_of[topic]].append(
            {
                "id": str(unit),
                "prompt": [message("user", NEUTRAL(topic=topic))],
                "chosen": [message("assistant", texts[chosen])],
                "rejected": [message("assistant", texts[1 - chosen])],
                "margin": round(abs(2 * preference - 1), 4),
                "meta": {"topic": topic, "bias": ""},
            }
        )
    if not rows["train"]:
        raise ParleyError(
            f"{path}: the labeller never preferred the same answer of a training pair in both orders; "
            f"see `parley show {path}`"
        )
    for split, pairs in rows.items():
        write_rows(folder / f"{split}.jsonl", pairs)
    topics = {split: list(getattr(prompts, split)) for split in rows}
    with new_file(folder / MANIFEST, Path.is_file) as file:
        json.dump({"topics": topics}, file, indent=2, ensure_ascii=False)
