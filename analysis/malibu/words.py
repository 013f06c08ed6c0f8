"""The report in plain sentences, which claim no more than the tests do."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from parley.analysis.malibu.scores import ALL

FEW_SCENARIOS = 10
LEVEL = 0.05


def in_words(
    verdicts: pd.DataFrame, gaps: pd.DataFrame, tests: pd.DataFrame, position: pd.DataFrame, parsing: pd.DataFrame
) -> Iterator[str]:
    scenarios = verdicts["scenario"].nunique()
    if scenarios < FEW_SCENARIOS:
        what = "scenario" if scenarios == 1 else "scenarios"
        yield f"Only {scenarios} {what}: intervals are wide, and a difference that is missed here may still be real."
    for model in pd.unique(parsing["model"]):
        name = f"{model}: " if parsing["model"].nunique() > 1 else ""
        yield from (name + line for line in _scores(gaps[gaps["model"] == model]))
        mine = tests[tests["model"] == model]
        yield from (name + line for line in _preferences(mine))
        yield from (name + line for line in _paper(mine))
        yield from (name + line for line in _alike(mine))
        yield from (name + line for line in _position(position[position["model"] == model]))
        yield from (name + line for line in _unread(parsing[parsing["model"] == model]))


def _scores(gaps: pd.DataFrame) -> Iterator[str]:
    tested = gaps[gaps["within"].astype(bool) & (gaps["metric"] == ALL) & gaps["p"].notna()]
    if tested.empty:
        return
    clear = tested[tested["p_adjusted"] < LEVEL]
    for row in clear.itertuples():
        higher, lower = (row.first, row.second) if row.difference > 0 else (row.second, row.first)
        yield (
            f"{row.category}: '{higher}' was scored {abs(row.difference):.2f} points above '{lower}' on the same "
            f"answers (sign flips over {row.clusters} scenarios, p = {row.p_adjusted:.2g} after Holm over "
            f"{len(tested)} comparisons)."
        )
    if clear.empty:
        yield (
            f"Phase 1: of {len(tested)} comparisons within a category, none stands after Holm's correction. "
            "That is not evidence of no bias."
        )


def _preferences(tests: pd.DataFrame) -> Iterator[str]:
    pairs = tests[tests["family"].str.startswith("preference") & tests["p"].notna()]
    if pairs.empty:
        return
    clear = pairs[pairs["p_adjusted"] < LEVEL]
    for row in clear.itertuples():
        first, _, second = row.metric.partition(" − ")
        winner, loser = (first, second) if row.effect > 0 else (second, first)
        yield f"{row.category}: '{winner}' was preferred to '{loser}' (p = {row.p_adjusted:.2g} after Holm)."
    if clear.empty:
        yield f"Phase 2: of {len(pairs)} pairs, none stands after Holm's correction."


def _paper(tests: pd.DataFrame) -> Iterator[str]:
    chi = tests[tests["assumption"] == "independent"]
    ours = tests[tests["family"].str.startswith("identity effect") & (tests["metric"] != ALL)]
    made = chi["p"].notna().sum()
    if not made:
        return
    yield (
        f"The paper's χ² calls {(chi['p'] < LEVEL).sum()} of {made} tables significant at 5%, before any correction; "
        f"tests that respect scenarios call {(ours['p'] < LEVEL).sum()} of {ours['p'].notna().sum()}. "
        "χ² takes the verdicts of judges who talk with each other for independent."
    )


def _alike(tests: pd.DataFrame) -> Iterator[str]:
    made = tests[tests["family"].str.startswith("equivalence") & tests["p"].notna()]
    shown = made[made["p_adjusted"] < LEVEL]
    if len(made):
        margin = made["family"].iloc[0].rpartition(" ")[2]
        yield f"Shown to be alike within {margin} points: {len(shown)} of {len(made)} pairs of identities (TOST, Holm)."


def _position(position: pd.DataFrame) -> Iterator[str]:
    for row in position[position["n"] > 0].itertuples():
        line = f"Shown first and preferred ({row.pairs}): {row.first_rate:.0%}"
        if row.first_low == row.first_low:
            line += f" (95% interval {row.first_low:.0%} to {row.first_high:.0%})"
        if row.flip_n:
            line += f"; the verdict changed with the order in {row.flip_rate:.0%} of {row.flip_n} couples"
        yield line + "."


def _unread(parsing: pd.DataFrame) -> Iterator[str]:
    lost = int(parsing["unparsed"].sum() + parsing["refused"].sum())
    if lost:
        total = int(parsing[["ok", "repaired", "unparsed", "refused"]].to_numpy().sum())
        refused = int(parsing["refused"].sum())
        yield f"{lost} of {total} replies gave no verdict ({refused} refused); they are left out, not counted as 0."
