"""The report in sentences, which claim no more than the tests do."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from parley.analysis.malibu.panel import ALL
from parley.analysis.reporting.text import plural

FEW_SCENARIOS = 10
LEVEL = 0.05


def summary(
    scenarios: int, gaps: pd.DataFrame, tests: pd.DataFrame, position: pd.DataFrame, parsing: pd.DataFrame
) -> Iterator[str]:
    """One sentence per result, model by model.

    Args:
        scenarios: How many scenarios there are.
        gaps: The table of `differences`.
        tests: The table of `significance`.
        position: The table of `position`.
        parsing: The table of `parsing`.
    """
    if scenarios < FEW_SCENARIOS:
        yield f"Only {plural(scenarios, 'scenario')}: intervals are wide, and a real difference may have been missed."
    models = pd.unique(parsing["model"])
    for model in models:
        prefix = f"{model}: " if len(models) > 1 else ""
        gaps_of_model, tests_of_model, position_of_model, parsing_of_model = (
            table[table["model"] == model] for table in (gaps, tests, position, parsing)
        )
        for sentence in (
            *_scores(gaps_of_model),
            *_preferences(tests_of_model),
            *_chi_square(tests_of_model),
            *_equivalence(tests_of_model),
            *_position(position_of_model),
            *_unread(parsing_of_model),
        ):
            yield prefix + sentence


def _scores(gaps: pd.DataFrame) -> Iterator[str]:
    tested = gaps[gaps["within"].astype(bool) & (gaps["metric"] == ALL) & gaps["p"].notna()]
    if tested.empty:
        return
    comparisons = plural(len(tested), "comparison")
    significant = tested[tested["p_adjusted"] < LEVEL]
    for row in significant.itertuples():
        higher, lower = (row.first, row.second) if row.difference > 0 else (row.second, row.first)
        yield (
            f"{row.category}: '{higher}' was scored {abs(row.difference):.2f} points above '{lower}' on the same "
            f"answers (sign flips over {plural(row.clusters, 'scenario')}, p = {row.p_adjusted:.2g} after Holm "
            f"correction for {comparisons})."
        )
    if significant.empty:
        yield (
            "Phase 1: no difference between identities is significant after Holm correction "
            f"({comparisons} within a category). That is not evidence of no bias."
        )


def _preferences(tests: pd.DataFrame) -> Iterator[str]:
    pairs = tests[tests["family"].str.startswith("preference") & tests["p"].notna()]
    if pairs.empty:
        return
    significant = pairs[pairs["p_adjusted"] < LEVEL]
    for row in significant.itertuples():
        first, _, second = row.metric.partition(" − ")
        winner, loser = (first, second) if row.effect > 0 else (second, first)
        yield f"{row.category}: '{winner}' was preferred to '{loser}' (p = {row.p_adjusted:.2g} after Holm correction)."
    if significant.empty:
        yield (
            "Phase 2: no preference between identities is significant after Holm correction "
            f"({plural(len(pairs), 'pair')})."
        )


def _chi_square(tests: pd.DataFrame) -> Iterator[str]:
    chi_square = tests[(tests["assumption"] == "independent") & tests["p"].notna()]
    ours = tests[tests["family"].str.startswith("identity effect") & (tests["metric"] != ALL) & tests["p"].notna()]
    if chi_square.empty:
        return
    yield (
        f"The paper's χ² calls {(chi_square['p'] < LEVEL).sum()} of {plural(len(chi_square), 'table')} significant at "
        f"5%, before any correction; tests that respect scenarios call {(ours['p'] < LEVEL).sum()} of {len(ours)}. "
        "χ² treats judges who talk to each other as independent."
    )


def _equivalence(tests: pd.DataFrame) -> Iterator[str]:
    tested = tests[tests["family"].str.startswith("equivalence") & tests["p"].notna()]
    if len(tested):
        margin = tested["family"].iloc[0].rpartition(" ")[2]
        equivalent = int((tested["p_adjusted"] < LEVEL).sum())
        pairs = plural(len(tested), "pair")
        yield f"Shown to be equivalent within {margin} points: {equivalent} of {pairs} of identities (TOST, Holm)."


def _position(position: pd.DataFrame) -> Iterator[str]:
    for row in position[position["n"] > 0].itertuples():
        sentence = f"Preference for the candidate shown first ({row.pairs}): {row.first_rate:.0%}"
        if row.first_low == row.first_low:
            sentence += f" (95% interval {row.first_low:.0%} to {row.first_high:.0%})"
        if row.flip_n:
            swapped = plural(row.flip_n, "comparison")
            sentence += f"; the verdict changed with the order in {row.flip_rate:.0%} of {swapped} run in both orders"
        yield sentence + "."


def _unread(parsing: pd.DataFrame) -> Iterator[str]:
    refused = int(parsing["refused"].sum())
    unread = int(parsing["unparsed"].sum()) + refused
    if unread:
        total = int(parsing[["ok", "repaired", "unparsed", "refused"]].to_numpy().sum())
        replies = plural(total, "reply", "replies")
        yield f"{unread:,} of {replies} gave no verdict ({refused:,} refused); they are left out, not counted as 0."
