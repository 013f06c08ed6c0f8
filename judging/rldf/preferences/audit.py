"""Tests how well round, speaker, length, style and words of the instructions predict which text was chosen.

A frame has one row per pair: `topic`, `chosen` and `rejected` (texts), and, if known, `round_chosen`,
`speaker_chosen`, `blind_chosen` (the score of a referee that did not know the round or the first scores: higher is
worse), the same for rejected, and `split`. Every accuracy is on topics that were held out; pairs of one topic are not
independent, so intervals are clustered by topic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from parley.analysis.effects import corrected
from parley.analysis.stats.clustered import bootstrap_mean
from parley.analysis.stats.paired import paired_difference
from parley.analysis.stats.proportions import cluster_proportion
from parley.analysis.stats.results import About, Estimate, Line
from parley.analysis.stats.tables import Floats, factorize
from parley.base.text import normal
from parley.judging.rldf.preferences import features
from parley.judging.rldf.preferences.paired_logit import (
    MIN_TOPICS,
    fold_inflation,
    held_out_correct,
    sign_flip_p,
)

WORDS, BLIND, TOGETHER = "all words of the texts", "the referee asked again, blind", "all shortcuts together"
SHORTCUTS = ("round", "speaker", "length", "style", "words of the instructions")
SIDES = ("chosen", "rejected")
MISSING = {
    "round": "not checked: the rows have no round_chosen and round_rejected",
    "speaker": "not checked: the rows have no speaker_chosen and speaker_rejected",
    "words of the instructions": "not checked: the instructions are not known",
    BLIND: "not checked: no blind second referee was run",
}


@dataclass(frozen=True, slots=True)
class Predictor:
    """A predictor of which text was chosen: features of chosen minus those of rejected."""

    name: str
    differences: sparse.csr_array


def shortcuts(
    pairs: pd.DataFrame,
    *,
    instructions: str = "",
    seed: int = 0,
    blind: Line | None = None,
) -> list[Line]:
    """The accuracy of every shortcut, of a bag of words, and of the blind referee, tested against one half.

    `also["words_minus"]` is the accuracy of all words minus that of the line, on the same pairs. `p` is from sign
    flips over topics, corrected for the number of shortcuts; other lines are separate tests.

    Args:
        pairs: One row per pair.
        instructions: The writers' instructions; "" if unknown.
        seed: Seed of the folds and of the bootstrap.
        blind: The blind referee's line (`blind_agreement`), if pairs were removed because of it; by default it is
            computed from these pairs.
    """
    topics, labels = factorize(pairs["topic"])
    correct: dict[str, Floats] = {}
    p: dict[str, float] = {}
    for predictor in predictors(pairs, instructions):
        if predictor.differences.nnz and len(labels) >= MIN_TOPICS:
            correct[predictor.name] = held_out_correct(predictor.differences, topics, seed)
            # p decides on a shortcut, not its accuracy: a fold learns the direction of the others, so accuracy is
            # not centred on one half. Intervals above one half named a shortcut in 6 of 20 datasets with
            # nothing planted.
            p[predictor.name] = sign_flip_p(predictor.differences, topics, seed)
    lines = []
    for name in (*SHORTCUTS, TOGETHER, WORDS):
        if name not in correct:
            lines.append(audit_line(Estimate(note=_unknown(pairs, name, instructions, len(labels))), name))
            continue
        gap = correct[WORDS] - correct[name] if WORDS in correct and name != WORDS else np.full(len(topics), np.nan)
        difference = bootstrap_mean(gap, topics, weight="row", seed=seed)
        inflation = fold_inflation(len(labels))
        ends = (difference.estimate + math.sqrt(inflation) * (end - difference.estimate) for end in _ends(difference))
        also = dict(
            zip(("words_minus", "words_minus_low", "words_minus_high"), (difference.estimate, *ends), strict=True)
        )
        accuracy = cluster_proportion(correct[name], pairs["topic"], inflation=inflation)
        lines.append(replace(audit_line(replace(accuracy, p=p[name]), name), also=also))
    lines.append(blind_agreement(pairs) if blind is None else blind)
    return corrected(lines, family=("family",))


def _ends(line: Estimate) -> tuple[float, float]:
    return line.low, line.high


def audit_line(accuracy: Estimate, name: str) -> Line:
    """A line of the audit. Only shortcuts form the family of tests."""
    return Line.of(
        accuracy,
        measure="accuracy",
        label=name,
        about=About.of(predictor=name, family="shortcuts" if name in SHORTCUTS else name),
        secondary=name not in SHORTCUTS,
        reference=0.5,
        cluster="topic",
    )


def blind_agreement(pairs: pd.DataFrame) -> Line:
    """The blind referee's line: the share of pairs whose rejected text it finds worse; ties count as half."""
    if not has(pairs, "blind"):
        return audit_line(Estimate(note=_unknown(pairs, BLIND, "", 0)), BLIND)
    gap = (pairs["blind_rejected"] - pairs["blind_chosen"]).to_numpy(dtype=float)
    agreed = np.where(np.isnan(gap), np.nan, (np.sign(gap) + 1) / 2)
    p = paired_difference(agreed, np.full(len(agreed), 0.5), pairs["topic"]).p
    return audit_line(replace(cluster_proportion(agreed, pairs["topic"]), p=p), BLIND)


def _unknown(pairs: pd.DataFrame, name: str, instructions: str, topics: int) -> str:
    """Why a predictor has no accuracy."""
    stored = {"round": has(pairs, "round"), "speaker": has(pairs, "speaker"), BLIND: has(pairs, "blind")}
    stored["words of the instructions"] = bool(instructions)
    if name in MISSING and not stored[name]:
        return MISSING[name]
    if topics < MIN_TOPICS:
        return f"not checked: {MIN_TOPICS} topics are needed, there are {topics}"
    return "no pair differs in it"


def has(pairs: pd.DataFrame, column: str) -> bool:
    """Whether both sides have the column, with a value in at least one pair."""
    names = [f"{column}_{side}" for side in SIDES]
    return all(name in pairs for name in names) and bool(pairs[names].notna().all(axis=1).any())


def predictors(pairs: pd.DataFrame, instructions: str = "") -> Iterator[Predictor]:
    """All predictors that the columns allow; all shortcuts together and all words come last."""
    chosen, rejected = (pairs[side].tolist() for side in SIDES)
    each: list[Predictor] = []
    if has(pairs, "round"):
        gap = (pairs["round_chosen"] - pairs["round_rejected"]).fillna(0).to_numpy(dtype=float)
        each.append(Predictor("round", sparse.csr_array(gap[:, None])))
    if has(pairs, "speaker"):
        names = sorted({name for side in SIDES for name in pairs[f"speaker_{side}"].dropna()})
        sides = [pd.Categorical(pairs[f"speaker_{side}"], categories=names).codes for side in SIDES]
        each.append(Predictor("speaker", _indicators(sides[0], len(names)) - _indicators(sides[1], len(names))))
    for name, measure in (("length", features.length), ("style", features.style)):
        each.append(Predictor(name, sparse.csr_array(measure(chosen) - measure(rejected))))
    vocabulary = features.vocabulary([*chosen, *rejected])
    instructed = {word for word in features.words(instructions) if len(word) >= features.MIN_LETTERS}
    listed = [word for word in vocabulary if word in instructed]
    for name, kept in (("words of the instructions", listed), (WORDS, vocabulary)):
        if kept:
            gaps = features.presence(chosen, kept) - features.presence(rejected, kept)
            each.append(Predictor(name, sparse.csr_array(gaps)))
    together = [predictor for predictor in each if predictor.name != WORDS]
    stacked = sparse.csr_array(sparse.hstack([predictor.differences for predictor in together]))
    yield from together
    yield Predictor(TOGETHER, stacked)
    yield from (predictor for predictor in each if predictor.name == WORDS)


def _indicators(codes: Any, count: int) -> sparse.csr_array:
    coded = np.flatnonzero(codes >= 0)
    return sparse.csr_array((np.ones(len(coded)), (coded, codes[coded])), shape=(len(codes), count))


def repetitions(pairs: pd.DataFrame) -> pd.DataFrame:
    """Repeated pairs and texts, and overlaps between splits.

    Texts are the same if they differ only in case, punctuation and spacing, as in an export.
    """
    texts = [pairs[side].map(normal) for side in SIDES]
    both = pd.concat(texts)
    counts = {
        "pairs that repeat another": int(
            pd.DataFrame(dict(zip(SIDES, texts, strict=True))).assign(topic=pairs["topic"]).duplicated().sum()
        ),
        "pairs with the same text on both sides": int((texts[0] == texts[1]).sum()),
        "texts that are chosen in one pair and rejected in another": len(set(texts[0]) & set(texts[1])),
    }
    if "split" in pairs and pairs["split"].nunique() > 1:
        splits = pd.concat([pairs["split"], pairs["split"]])
        counts["texts in more than one split"] = _in_several(both, splits)
        counts["topics in more than one split"] = _in_several(pairs["topic"], pairs["split"])
    return pd.DataFrame([{"what": what, "count": count} for what, count in counts.items()])


def _in_several(keys: pd.Series, splits: pd.Series) -> int:
    return int((splits.groupby(keys.to_numpy()).nunique() > 1).sum())
