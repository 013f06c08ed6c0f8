"""RLAIF, the baseline without debates: pairs labelled by a model, then the same reward model and RL from the same SFT.

OUT/rlaif/pairs (a dataset as `parley export` writes it), OUT/rlaif/reward, OUT/rlaif/rl.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from parley.agents import ConfigError, ParleyError
from parley.evaluation import Go, go_silently, model_name
from parley.execute import Job, Options
from parley.judging.rldf.answers import NEUTRAL
from parley.runs import RunFile
from parley.training.config import TrainConfig
from parley.training.pairs import read_pairs
from parley.training.prompts import MANIFEST, Topics, read_topics
from parley.training.stage import read_manifest


def rlaif_config(config: TrainConfig, go: Go = go_silently) -> TrainConfig:
    """Has the pairs labelled, and gives the config that trains on them."""
    part = config.rlaif
    if part.labeller is None:
        raise ConfigError("RLAIF needs a model that labels: set rlaif.labeller")
    sft = Path(config.begin or Path(config.out) / "sft")
    if read_manifest(sft) is None:
        raise ConfigError(f"there is no finished sft stage at {sft}: parley train sft")
    folder = Path(config.out) / "rlaif"
    folder.mkdir(parents=True, exist_ok=True)
    topics = read_topics(config, read_pairs(config))
    split_of = {
        **dict.fromkeys(list(topics.train)[: part.topics], "train"),
        **dict.fromkeys(topics.validation, "validation"),
        **dict.fromkeys(topics.test, "test"),
    }
    listed = folder / "topics.txt"
    listed.write_text("".join(f"{topic}\n" for topic in split_of), "utf-8")
    asked = {
        "topics_from": str(listed),
        "model": model_name(sft, config),
        "labeller": part.labeller,
        "pairs": part.pairs,
        "temperature": part.temperature,
        "max_tokens": part.max_tokens,
        "seed": config.seed,
    }
    path = folder / "labels.sqlite"
    go(Job.make("rlaif", asked, Options(out=str(path))))
    _write(path, split_of, folder / "pairs", topics)
    rl = config.rl.model_copy(update={"topics_from": "debates"})
    return config.model_copy(
        update={"data": str(folder / "pairs"), "out": str(folder), "begin": str(sft), "rl": rl, "pairs": None,
                "topics": None, "rounds": None, "roles": None}
    )  # fmt: skip


def _write(path: Path, split_of: dict[str, str], folder: Path, topics: Topics) -> None:
    """The pairs the labeller was sure of, as rows of TRL's, and the topics RLDF's policy has: RLAIF's gets the same."""
    from parley import frames

    with RunFile.open(path) as file:
        verdicts = frames.verdicts(file)
    rows: dict[str, list[dict[str, Any]]] = {"train": [], "validation": [], "test": []}
    for unit, here in verdicts.groupby("unit", sort=False, observed=True):
        said = {(str(row.metric), str(row.subject), int(row.round)): row for row in here.itertuples()}
        if not said["agreed", "", 4].value:
            continue
        texts = [str(said["answer", str(number), number].text) for number in (1, 2)]
        better = int(said["label", "", 3].value)
        topic = str(here["topic"].iloc[0])
        rows[split_of[topic]].append(
            {
                "id": str(unit),
                "prompt": [{"role": "user", "content": NEUTRAL(topic=topic)}],
                "chosen": [{"role": "assistant", "content": texts[better]}],
                "rejected": [{"role": "assistant", "content": texts[1 - better]}],
                "meta": {"topic": topic, "bias": ""},
            }
        )
    if not rows["train"]:
        raise ParleyError(f"{path}: the labeller was sure of no pair; see `parley show {path}`")
    folder.mkdir(exist_ok=True)
    for split, part in rows.items():
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in part)
        (folder / f"{split}.jsonl").write_text(text, "utf-8")
    listed = {split: list(getattr(topics, split)) for split in rows}
    (folder / MANIFEST).write_text(json.dumps({"topics": listed}, indent=2, ensure_ascii=False), "utf-8")
