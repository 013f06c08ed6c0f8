"""What a reward model has learnt: its accuracy on held-out topics, and what is left of it when lengths are matched and
persona words masked. The figures are `parley.training.evaluation.reward`'s; here are the scores they are made from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import pandas as pd

from parley.analysis.reporting.figures import save
from parley.judging.rldf.roles import load_bias
from parley.scenarios import BIASES
from parley.training import device
from parley.training.evaluation import reward as figures
from parley.training.pairs import PreferencePair, with_texts
from parley.training.scorer import RewardScorer
from parley.training.stage import add_facts
from parley.training.trainer import Course

MASK = "someone"


def look_at(course: Course) -> None:
    """Scores every held-out pair, and writes tables, figures and a summary beside the reward model."""
    folder = course.folder("reward")
    scorer = RewardScorer.load(folder, course.chat, device=device.device(), dtype=device.dtype(course.config))
    with device.enough_memory():
        held_out, train = scored(scorer, course.pairs.held_out()), lengths(course.pairs.train)
    held_out.to_csv(folder / "held_out.csv", index=False)
    table = figures.quality(held_out, train)
    table.to_csv(folder / "quality.csv", index=False)
    bins = figures.reliability(held_out)
    bins.to_csv(folder / "reliability.csv", index=False)
    save(figures.reliability_figure(bins, held_out), folder / "reliability")
    words = figures.words(table)
    add_facts(folder, quality=figures.plain(table), ece=figures.calibration_error(bins), verdict=words)


def scored(scorer: RewardScorer, pairs: Sequence[PreferencePair]) -> pd.DataFrame:
    """One row a pair: both scores as they are and with persona words masked, and both lengths."""
    masked = [with_texts(pair, mask(pair.chosen.text, pair), mask(pair.rejected.text, pair)) for pair in pairs]
    columns: dict[str, list[float]] = {}
    for name, listed in (("", pairs), ("_masked", masked)):
        for side in ("chosen", "rejected"):
            texts = [getattr(pair, side).text for pair in listed]
            columns[side + name] = scorer.texts([pair.prompt for pair in listed], texts)
    frame = lengths(pairs).assign(**columns)
    frame["changed"] = [pair != other for pair, other in zip(pairs, masked, strict=True)]
    return frame


def lengths(pairs: Sequence[PreferencePair]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": [pair.id for pair in pairs],
            "topic": [pair.topic for pair in pairs],
            "words_chosen": [len(pair.chosen.text.split()) for pair in pairs],
            "words_rejected": [len(pair.rejected.text.split()) for pair in pairs],
        }
    )


def mask(text: str, pair: PreferencePair) -> str:
    """A text without the words that give a speaker away: role labels and marks, and the speakers' names."""
    names = tuple(sorted({pair.chosen.speaker, pair.rejected.speaker} - {""}))
    found = _given_away(pair.bias, names)
    return found.sub(MASK, text.replace("’", "'")) if found else text


@lru_cache(maxsize=1024)
def _given_away(bias: str, names: tuple[str, ...]) -> re.Pattern[str] | None:
    words = set(names)
    if bias in BIASES:
        for role in load_bias(bias).role:
            words |= {role.name, *role.marks, re.sub(r"^(?:an?|the) ", "", role.label)}
    listed = sorted(words, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, listed))})\b", re.IGNORECASE) if listed else None
