"""Do silent ballots leave their answers more often for one identity than for another? What is read is then a selection.

A ballot with less than half of its probability on its answers is unread (`parley.agents.LEAST_ON_SCALE`), and one with
a little more is read from what is left of a refusal. Both are compared between identities as scores are: within the
same cells, over the same clusters, in the same families. In pairs, where a ballot is about both identities, those that
show the first one first are compared with those that show the second one first.

A contrast is *unequal*, and has no verdict, if a difference is shown, and not shown to be within `MARGIN`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from parley.analysis.malibu.by_judge import Contrast
from parley.analysis.malibu.contrasts import of_models
from parley.analysis.malibu.missing import ON_SCALE
from parley.analysis.malibu.pairs import margins_of_pairs
from parley.analysis.malibu.panel import PanelData, ScenarioGaps, ScoreTable
from parley.analysis.malibu.primary import primary_contrasts
from parley.analysis.reporting.report import Section, Table
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.results import ALPHA
from parley.base.text import p_text, plural

MARGIN = 0.05
"""As in the judge's card: one ballot in twenty, unread for one side only, can move a mean by a tenth of a point."""
UNREAD = "unread"
COLUMNS = [
    *("model", "phase", "family", "category", "first", "second", "first_unread", "second_unread", "p_unread"),
    *("first_on_scale", "second_on_scale", "p_on_scale", "clusters", "unequal"),
]
PRIMARY, PAIRS = "primary contrasts", "pairs"
NO_VERDICT = "No verdict: silent ballots leave the answers asked for more often for one identity than for another."


class Compared(NamedTuple):
    """A contrast between two sides in one outcome: the mean of each side, and the differences."""

    contrast: Contrast
    first: float
    second: float
    gaps: ScenarioGaps


Family = list[Compared]


def unread_ballots(data: PanelData) -> pd.DataFrame:
    """Share of unread ballots and mean share on the answers, by contrast, each with a test and whether it is unequal.

    Only for models and phases in which they could differ by more than `MARGIN`: some ballot is unread, or has less than
    1 - `MARGIN` on its answers. Sign flips over clusters, or t where samples are crossed; p-values are Holm-corrected
    over the primary contrasts, and over the pairs, of a model and phase.

    Args:
        data: The verdicts.
    """
    rows: list[dict[str, Any]] = []
    for model in filter(data.read_silently, data.models):
        for phase, verdicts, compare in ((1, data.labelled_verdicts, _singles), (2, data.final_votes, _pairs)):
            own = verdicts[verdicts["model"] == model]
            outcomes = {UNREAD: own["value" if phase == 1 else "text"].isna().astype(float)}
            if ON_SCALE in own:
                outcomes[ON_SCALE] = own[ON_SCALE]
            if outcomes[UNREAD].any() or (outcomes.get(ON_SCALE, outcomes[UNREAD] + 1) < 1 - MARGIN).any():
                found = {name: compare(data, own.assign(value=values)) for name, values in outcomes.items()}
                rows += [{"model": model, "phase": phase, **row} for row in _tested(found)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _singles(data: PanelData, outcomes: pd.DataFrame) -> dict[str, Family]:
    model, table = str(outcomes["model"].iloc[0]), ScoreTable.of(outcomes)
    families = {
        PRIMARY: primary_contrasts(data, model),
        PAIRS: [Contrast(category, (first,), (second,)) for category, first, second in data.pairs(model)],
    }
    means = outcomes.groupby("identity", observed=True)["value"].mean()
    return {
        family: [
            Compared(
                contrast,
                float(means[list(contrast.first)].mean()),
                float(means[list(contrast.second)].mean()),
                table.contrast(contrast.first, contrast.second),
            )
            for contrast in contrasts
        ]
        for family, contrasts in families.items()
    }


def _pairs(data: PanelData, outcomes: pd.DataFrame) -> dict[str, Family]:
    outcomes = outcomes[outcomes["value"].notna()]
    is_first = (outcomes["identity_a"].astype(object) == outcomes["identity"].astype(object)).to_numpy()
    # Twice, as the mean over both orders halves the difference between them.
    signed = np.where(is_first, 2.0, -2.0) * outcomes["value"].to_numpy(dtype=float)
    family = []
    for first, second, units, gaps in margins_of_pairs(outcomes, signed):
        sides = units["value"].groupby(units["identity_a"].astype(object) == units["identity"].astype(object)).mean()
        contrast = Contrast(str(units["category"].iloc[0]), (first,), (second,))
        family.append(Compared(contrast, sides.get(True, np.nan), sides.get(False, np.nan), gaps))
    return {PAIRS: family}


def _tested(outcomes: Mapping[str, Mapping[str, Family]]) -> Iterator[dict[str, Any]]:
    """A row per family and contrast."""
    rows: dict[tuple[str, Contrast], dict[str, Any]] = {}
    for name, families in outcomes.items():
        for family, compared in families.items():
            tests = [one.gaps.test() for one in compared]
            differ = holm([test.p for test in tests])
            small = holm([one.gaps.equivalence_p(MARGIN) for one in compared])
            for one, test, p, p_small in zip(compared, tests, differ, small, strict=True):
                row = rows.setdefault((family, one.contrast), {"clusters": test.clusters, "unequal": False})
                row |= {f"first_{name}": one.first, f"second_{name}": one.second, f"p_{name}": p}
                row["unequal"] |= bool(p <= ALPHA and not p_small <= ALPHA)
    for (family, contrast), row in rows.items():
        yield {"family": family, "category": contrast.category, **contrast.sides, **row}


class Unequal(NamedTuple):
    """A contrast without a verdict, and why."""

    model: str
    phase: int
    category: str
    first: str
    second: str
    why: str


def unequal_contrasts(table: pd.DataFrame, unit: str) -> list[Unequal]:
    """The contrasts that are unequal, those of the headline first; a pair that is one of them is not named again.

    Args:
        table: The table of `unread_ballots`.
        unit: What a cluster is called.
    """
    rows = table[table["unequal"].astype(bool)].drop_duplicates(["model", "phase", "first", "second"])
    return [
        Unequal(row.model, row.phase, row.category, row.first, row.second, _why(row, unit)) for row in rows.itertuples()
    ]


def _why(row: Any, unit: str) -> str:
    in_pairs = ("", "") if row.phase == 1 else (" in pairs", " that show the one or the other first")
    text = (
        f"No verdict on {row.first} − {row.second}{in_pairs[0]}: {row.first_unread:.0%} and {row.second_unread:.0%} of "
        f"the silent ballots{in_pairs[1]} are unread (p {p_text(row.p_unread)}"
    )
    if row.p_on_scale == row.p_on_scale:
        text += (
            f"), and {row.first_on_scale:.0%} and {row.second_on_scale:.0%} of the probability is on the answers asked "
            f"for (p {p_text(row.p_on_scale)}"
        )
    return f"{text}; over {plural(row.clusters, unit)}). What can be read is a selection."


def unread_section(data: PanelData) -> Section:
    """Unread ballots by contrast as a table, with a caution for every primary contrast without a verdict.

    Nothing where no model cast silent ballots.
    """
    if not any(map(data.read_silently, data.models)):
        return Section()
    table = unread_ballots(data)
    return Section(
        tables=(
            Table(
                name="unread_ballots",
                title="Do silent ballots leave the answers asked for more often for one identity?",
                frame=table,
                note="unread: less than half of a ballot's probability (or sampled replies) is on its answers; "
                "on_scale: mean share on them. p: Holm by family. unequal: a difference is shown and not shown to be "
                f"within {MARGIN:g}, so the contrast has no verdict. In pairs: ballots that show this identity first.",
            ),
        ),
        cautions=tuple(_cautions(table, data.cluster_noun)),
    )


def _cautions(table: pd.DataFrame, unit: str) -> Iterator[str]:
    for _, prefix, own in of_models(table):
        planned = own[own["family"] == PRIMARY]
        found = unequal_contrasts(planned, unit) or unequal_contrasts(own, unit)[:1]
        yield from (f"{prefix}{contrast.why}" for contrast in found)
        if more := len(unequal_contrasts(own, unit)) - len(found):
            others = plural(more, "other contrast has", "other contrasts have")
            yield f"{prefix}{others} no verdict for the same reason (table unread_ballots)."
