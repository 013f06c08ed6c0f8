"""Who moved, towards whom? How often a judge adopts what another judge said before they talked, beside chance.

A case is one verdict (a score on a metric, or a preference) on which two judges differed in round 1. It counts as
closer if the last verdict of the one is nearer to the first verdict of the other than its own first one was, and as
adopted if it equals that. Judges who change at random also come closer; so chance is the same rate with the other
judge's first verdict on the same text under another label, which nobody heard in this unit.

These rates describe. They do not test, because judges who share an opinion of a text or a label come closer to each
other without a word, as noise goes away. What is tested is the weight of advice: by how many points a judge moved per
point by which the other's first verdict was above what this judge says of the text and of the label on average. That is
0 where nobody listens, whatever the judges' opinions have in common, and the rate of adoption where verdicts are
adopted whole. It needs a blind first round: otherwise a judge's own first verdict already depends on the other's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.contrasts import LEVEL, of_models, row_codes, tested, with_holm
from parley.analysis.malibu.panel import PanelData, Verdicts, panel_data
from parley.analysis.malibu.rounds import TOLERANCE, before_and_after, partners, same_labels, same_text
from parley.analysis.reporting.report import ReportContext, Section, Table
from parley.analysis.stats.tables import Floats, Ints, factorize
from parley.base.text import p_text, plural, signed

ANYONE = "(any)"
"""In place of a judge's name: all judges together."""
CONTAGION = [
    *("model", "phase", "judge", "towards", "differed", "adopted", "adopted_chance", "closer", "closer_chance"),
    *("weight", "low", "high", "p", "p_adjusted", "lead", "lead_p", "clusters", "note"),
]
NOBODY = "nobody differed"
NOT_BLIND = "not tested: round 1 was not blind"
ONE_LABEL = "chance is not known: no text was judged under two labels"


def contagion(verdicts: Verdicts, *, blind: bool | None = None) -> pd.DataFrame:
    """By judge and other judge: how often the one came closer to what the other said in round 1, and how far.

    `weight` is the weight of advice, with sign flips over bases. Holm's correction is over the pairs of judges of a
    model and phase, and apart from these over the judges as targets of all others, with the panel as a whole.
    `lead` is how far the weight of a target is above the mean of the other targets, `lead_p` its Holm-corrected
    p-value.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        blind: Whether nobody heard anybody in round 1; unless it is known, the weight is not computed.
    """
    both = before_and_after(panel_data(verdicts))
    both = both[(both["phase"] == 1) == (both["metric"] != "preferred")]  # in pairs, the preference is the verdict
    tables = [
        _of_model(group, blind=bool(blind)).assign(model=str(model), phase=int(phase))
        for (model, phase), group in both.groupby(["model", "phase"], sort=True, observed=True)
        if group["judge"].nunique() > 1
    ]
    return pd.concat(tables, ignore_index=True)[CONTAGION] if tables else pd.DataFrame(columns=CONTAGION)


def _of_model(verdicts: pd.DataFrame, *, blind: bool) -> pd.DataFrame:
    judge, names = factorize(verdicts["judge"], sort=False)
    key = row_codes([verdicts[name] for name in ("unit", "metric")])
    _, first_row, item = np.unique(key, return_index=True, return_inverse=True)
    items = verdicts.iloc[first_row]
    before, after = (np.full((len(items), len(names)), np.nan) for _ in range(2))
    before[item, judge], after[item, judge] = verdicts["before"], verdicts["after"]
    cluster = factorize(items["cluster"])[0]
    texts, labels = same_text(items), same_labels(items)
    others = partners(texts)
    # By kind of count, cluster, judge and target.
    counts = np.zeros((8, int(cluster.max()) + 1, len(names), len(names)))
    for target in range(len(names)):
        said = before[:, target]
        counts[:3, :, :, target] = _cases(before, after, said, cluster)
        for other in others:
            counts[3:6, :, :, target] += _cases(before, after, np.where(other >= 0, said[other], np.nan), cluster)
        if blind:
            counts[6:, :, :, target] = _moves(before, after, _unexpected(said, texts, labels), cluster)
    judges = np.arange(len(names))
    counts[:, :, judges, judges] = 0.0  # a judge is not its own target
    targets = counts.sum(axis=2)
    leads = _leads([_weights(targets[..., j]) for j in judges])
    rows = [
        {"judge": ANYONE, "towards": ANYONE, "family": 1} | _row(targets.sum(axis=2)),
        *(
            {"judge": ANYONE, "towards": names[j], "family": 1} | _row(targets[..., j]) | lead
            for j, lead in zip(judges, leads, strict=True)
        ),
        *(
            {"judge": names[i], "towards": names[j], "family": 2} | _row(counts[..., i, j])
            for j in judges
            for i in judges
            if i != j
        ),
    ]
    frame = with_holm(pd.DataFrame(rows), ["family"])
    lead_p = with_holm(frame.assign(p=frame["lead_p"]), ["family"])["p_adjusted"]
    frame = frame.assign(lead_p=lead_p, weight=frame["difference"])
    return frame if blind else frame.assign(note=frame["note"].where(frame["note"] == NOBODY, NOT_BLIND))


def _cases(before: Floats, after: Floats, said: Floats, cluster: Ints) -> Floats:
    """By cluster and judge: verdicts that were not what the target said, how many then were, how many came closer."""
    distance, left = np.abs(before - said[:, None]), np.abs(after - said[:, None])
    differed = distance > TOLERANCE  # False where a verdict is missing
    kinds = differed, differed & (left <= TOLERANCE), differed & (left < distance - TOLERANCE)
    return np.stack([_sums(kind.astype(float), cluster) for kind in kinds])


def _moves(before: Floats, after: Floats, unexpected: Floats, cluster: Ints) -> Floats:
    """By cluster and judge: sums of moves times the unexpected part of what the target said, and of its squares."""
    known = np.isfinite(before) & np.isfinite(unexpected)[:, None]
    products = (after - before) * unexpected[:, None], np.broadcast_to(unexpected[:, None] ** 2, before.shape)
    return np.stack([_sums(np.where(known, product, 0.0), cluster) for product in products])


def _sums(values: Floats, cluster: Ints) -> Floats:
    return np.stack([np.bincount(cluster, column) for column in values.T], axis=1)


def _unexpected(said: Floats, texts: Ints, labels: Ints) -> Floats:
    """What a judge said, less its mean on the text, less what the label adds to that on average."""
    rest = said - _group_means(said, texts)
    rest -= _group_means(rest, labels)
    return np.where(np.abs(rest) > TOLERANCE, rest, np.where(np.isfinite(rest), 0.0, np.nan))


def _group_means(values: Floats, groups: Ints) -> Floats:
    _, member = np.unique(groups, return_inverse=True)
    known = np.isfinite(values)
    counts = np.bincount(member[known], minlength=int(member.max()) + 1)
    sums = np.bincount(member[known], values[known], minlength=len(counts))
    means: Floats = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    return means[member]


def _weights(counts: Floats) -> Floats:
    """One value per cluster, whose mean is the weight of advice: moves per mean square of what was unexpected.

    A cluster in which the target said nothing unexpected has none.
    """
    moves, squares = counts[6], counts[7]
    known = squares > 0
    return np.where(known, moves / squares[known].mean() if known.any() else np.nan, np.nan)


def _row(counts: Floats) -> dict[str, Any]:
    """A row of the table, from counts by kind and cluster."""
    row = tested(_weights(counts))
    differed, adopted, closer, cases, adopted_chance, closer_chance = counts[:6].sum(axis=1)
    note = NOBODY if not differed else ONE_LABEL if not cases else row["note"]
    return row | {
        "differed": int(differed),
        "adopted": _share(adopted, differed),
        "adopted_chance": _share(adopted_chance, cases),
        "closer": _share(closer, differed),
        "closer_chance": _share(closer_chance, cases),
        "lead": math.nan,
        "lead_p": math.nan,
        "note": note,
    }


def _share(count: float, cases: float) -> float:
    return float(count / cases) if cases else math.nan


def _leads(weights: list[Floats]) -> Iterator[dict[str, Any]]:
    """For every target: by how much its weight is above the mean weight of the others."""
    by_base = np.stack(weights)
    for place, own in enumerate(by_base):
        test = tested(own - np.delete(by_base, place, axis=0).mean(axis=0))  # NaN where a base lacks one of them
        yield {"lead": test["difference"], "lead_p": test["p"]}


def contagion_words(table: pd.DataFrame, *, blind: bool | None = None, cluster: str = "base") -> Iterator[str]:
    """Per phase: whether judges adopt what they hear, and whose verdict most if one judge stands out.

    Args:
        table: The table of `contagion`.
        blind: Whether nobody heard anybody in round 1; None if it is not known.
        cluster: What the clusters are called.
    """
    ballot = "blind verdict" if blind else "verdict of round 1"
    for _, prefix, rows in of_models(table):
        for phase, part in rows.groupby("phase"):
            start = f"{prefix}Phase {phase}: "
            whole = next(part[(part["judge"] == ANYONE) & (part["towards"] == ANYONE)].itertuples())
            if not whole.differed:
                yield f"{start}no two judges differed in round 1, so nobody could move towards another."
                continue
            seen = (
                f"{start}where two judges differed, one came closer to the other's {ballot} in {whole.closer:.0%} of "
                f"{plural(whole.differed, 'case')}"
                + ("" if math.isnan(whole.closer_chance) else f", by chance in {whole.closer_chance:.0%}")
            )
            if math.isnan(whole.p):
                yield f"{seen} ({whole.note})."
                continue
            targets = part[(part["judge"] == ANYONE) & (part["towards"] != ANYONE) & (part["p_adjusted"] <= LEVEL)]
            targets = targets[targets["weight"] > 0]
            finding = "no evidence that judges adopt what they hear"
            if whole.p_adjusted <= LEVEL:
                finding = "they adopt what they hear" if whole.weight > 0 else "they move away from what they hear"
            elif len(targets):
                finding = f"not shown of all judges, but of those who heard {' and '.join(targets['towards'])}"
            yield (
                f"{seen}; it moved {_points(whole)} per point of the other's (sign flips over "
                f"{plural(whole.clusters, cluster)}, p {p_text(whole.p_adjusted)} after Holm correction): {finding}."
            )
            leading = targets[(targets["lead"] > 0) & (targets["lead_p"] <= LEVEL)]
            for row in leading[leading["lead"] == leading["lead"].max()].itertuples():
                yield (
                    f"{start}{row.towards} has the most influence: the others moved {_points(row)} per point of its "
                    f"{ballot}, {row.lead:.2f} more than towards the other judges (p {p_text(row.lead_p)} after Holm "
                    "correction for the judges)."
                )


def _points(row: Any) -> str:
    points = f"{row.weight:.2f} points"
    return f"{points} ({signed(row.low)} to {signed(row.high)})" if math.isfinite(row.low) else points


def contagion_section(data: PanelData, context: ReportContext) -> Section:
    """Who moves towards whom, as a table and sentences."""
    moves, unit = contagion(data, blind=context.blind), data.cluster_noun
    table = Table(
        name="contagion",
        title="Who moves towards whom?",
        frame=moves,
        note="Where two judges differed in round 1: how often the judge adopted, or came closer to, what the "
        "other had said (towards); chance: the same with what the other said of the same text under another "
        f"label. weight: points moved per point of the other's unexpected verdict, sign flips over {unit}s.",
    )
    return Section(tables=(table,), words=tuple(contagion_words(moves, blind=context.blind, cluster=unit)))
