"""Echo: do judges repeat each other? Words of their justifications, and whole sets of scores, beside chance.

    echo(verdicts, repeated_remarks(Path("runs/a.sqlite")))

A statement repeats another if it is the same but for case, punctuation and spacing (verbatim), or if at least
`NEARLY` of its five-word sequences are in the other (nearly verbatim). Five words in a row are rarely shared by
chance, while four of them are often a phrase of the judged text; from 0.8 on little of a statement is its own. What
a judge repeats of itself is not an echo.

Judges who are one model may write the same of the same text without hearing each other. So chance is how often a
statement repeats what the same judges said, in the same rounds, on the same text in the unit before, under another
label: nobody heard that. In a blind round the two rates are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from parley.analysis.malibu.contrasts import LEVEL, nested_means, of_models, row_codes, tested, with_holm
from parley.analysis.malibu.panel import PanelData, Verdicts, panel_data
from parley.analysis.malibu.rounds import partners, same_text
from parley.analysis.reporting.report import ReportContext, Section, Table
from parley.analysis.stats.signflips import clusters_to_reject
from parley.analysis.stats.tables import Floats, factorize, unique_rows
from parley.base.text import p_text, plural

NEARLY = 0.8
SEQUENCE = 5
"""Words in a row that are compared, for the share of a statement; a page that marks single passages takes eight."""
MUCH = 0.1
VERBATIM, NEAR, SCORES = "words, verbatim", "words, nearly verbatim", "all scores the same"
ECHO = ["model", "phase", "round", "what", "share", "chance", "difference", "low", "high", "p", "p_adjusted", "n"]
ECHO = [*ECHO, "clusters", "note"]
REMARKS = ["judge", "round", "verbatim", "near", "verbatim_chance", "near_chance"]
NO_CHANCE = "chance is not known: no text was judged under two labels"


class Statement(NamedTuple):
    """What one judge said in one round, reduced to what is compared."""

    judge: str
    round: int
    words: str
    sequences: frozenset[tuple[str, ...]]

    @classmethod
    def of(cls, judge: str, round: int, text: str) -> Statement:
        words = re.findall(r"\w+", text.casefold())
        length = min(SEQUENCE, len(words))
        runs = zip(*(words[start:] for start in range(length)), strict=False)
        return cls(judge, round, " ".join(words), frozenset(runs))

    def overlap(self, other: Statement) -> float:
        """The share of this statement's five-word sequences that the other has too; 1 if the words are the same."""
        if self.words == other.words:
            return 1.0
        return len(self.sequences & other.sequences) / len(self.sequences) if self.sequences else 0.0


class Repeats(NamedTuple):
    """Whether a statement repeats another judge's earlier one, word for word or nearly; None if there is none."""

    verbatim: bool | None
    near: bool | None


def repeats(statement: Statement, others: Sequence[Statement], own: Sequence[Statement]) -> Repeats:
    """Compare a statement with those of other judges before it.

    Args:
        statement: What is looked at.
        others: Statements of other judges.
        own: What the judge said before; a statement that repeats this is not an echo.
    """
    if not others:
        return Repeats(None, None)
    verbatim = any(statement.words == other.words for other in others)
    near = verbatim or any(statement.overlap(other) >= NEARLY for other in others)
    new = all(statement.overlap(earlier) < NEARLY for earlier in own)
    return Repeats(verbatim and new, near and new)


def unit_repeats(
    spoken: Sequence[Statement], elsewhere: Sequence[Statement] | None
) -> Iterator[tuple[str, int, bool, bool, float, float]]:
    """A row (see `REMARKS`) for every statement of a unit that comes after another judge's.

    Args:
        spoken: The unit's statements, in order; those without a word are left out.
        elsewhere: Those of another unit on the same text; without it, chance is NaN.
    """
    unheard = {(said.judge, said.round): said for said in elsewhere or () if said.words}
    spoken = [said for said in spoken if said.words]
    for place, statement in enumerate(spoken):
        before = spoken[:place]
        others = [said for said in before if said.judge != statement.judge]
        own = [said for said in before if said.judge == statement.judge]
        seen = repeats(statement, others, own)
        if seen.near is None or seen.verbatim is None:
            continue
        same = [unheard[key] for said in others if (key := (said.judge, said.round)) in unheard]
        by_chance = repeats(statement, same, own) if len(same) == len(others) else Repeats(None, None)
        verbatim, near = (np.nan if value is None else float(value) for value in by_chance)
        yield statement.judge, statement.round, seen.verbatim, seen.near, verbatim, near


def judge_statements(spoken: Iterable[tuple[str, int, Mapping[str, Any] | None]]) -> list[Statement]:
    """Statements from judges' parsed replies, in order; unreadable ones (None) are left out.

    The free text of a reply is its strings of more than one word, so not the choice of a candidate.

    Args:
        spoken: Judge, round and parsed reply.
    """
    return [
        Statement.of(
            judge, round, " ".join(text for text in reply.values() if isinstance(text, str) and " " in text.strip())
        )
        for judge, round, reply in spoken
        if reply is not None
    ]


def echo(verdicts: Verdicts, remarks: pd.DataFrame | None = None) -> pd.DataFrame:
    """By model, phase and round: how often judges repeat another one's words or scores, beside chance.

    Words: the share of the statements after another judge's that repeat one. Scores: the share of pairs of judges who
    gave the same scores on all metrics; by chance, the one's scores are those that the other gave to the same text
    under another label. `difference` is share minus chance where both are known, with sign flips over bases and
    Holm's correction over the rows of a model.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        remarks: What `parley.reports.remarks.repeated_remarks` returns; without it, only scores are compared.
    """
    data = panel_data(verdicts)
    rows = [*_words(remarks), *_scores(data)] if remarks is not None else list(_scores(data))
    table = pd.DataFrame(rows, columns=[name for name in ECHO if name != "p_adjusted"])
    return with_holm(table, ["model"])[ECHO].sort_values(["model", "phase", "round"], kind="stable", ignore_index=True)


def _words(remarks: pd.DataFrame) -> Iterator[dict[str, Any]]:
    remarks = remarks if "cluster" in remarks else remarks.assign(cluster=_clusters(remarks))
    for (model, phase, round), group in remarks.groupby(["model", "phase", "round"], sort=True, observed=True):
        facets = {"model": str(model), "phase": int(phase), "round": int(round)}
        for what, name in ((VERBATIM, "verbatim"), (NEAR, "near")):
            yield facets | {"what": what} | _row(group, group[name], group[f"{name}_chance"])


def _clusters(remarks: pd.DataFrame) -> pd.Series:
    scenario = remarks["scenario"].astype(object)
    if "base" not in remarks:
        return scenario
    base = remarks["base"].astype(object)
    return base.where(base.notna() & (base != ""), scenario)


def _scores(data: PanelData) -> Iterator[dict[str, Any]]:
    judged = data.without_chair
    judged = judged[(judged["metric"] != "preferred") & judged["value"].notna()]
    for (model, phase, round), group in judged.groupby(["model", "phase", "round"], sort=True, observed=True):
        if group["judge"].nunique() > 1:
            facets = {"model": str(model), "phase": int(phase), "round": int(round), "what": SCORES}
            yield facets | _same_scores(group)


def _same_scores(verdicts: pd.DataFrame) -> dict[str, Any]:
    judge, names = factorize(verdicts["judge"], sort=False)
    key = row_codes([verdicts["unit"]])
    _, first_row, unit = np.unique(key, return_index=True, return_inverse=True)
    units = verdicts.iloc[first_row]
    column = row_codes([verdicts[name] for name in ("metric", "subject") if name in verdicts])
    _, column = np.unique(column, return_inverse=True)
    scores = np.full((len(units) * len(names), int(column.max()) + 1), np.nan)
    scores[unit * len(names) + judge, column] = verdicts["value"].to_numpy(dtype=float).round(6)
    code = unique_rows(scores)[1].reshape(len(units), len(names)).astype(float)
    code[np.isnan(scores).any(axis=1).reshape(code.shape)] = np.nan
    lists = partners(same_text(units.assign(metric="")))
    kept, same, chance = [], [], []
    for first in range(len(names)):
        for second in range(first + 1, len(names)):
            known = np.isfinite(code[:, first]) & np.isfinite(code[:, second])
            unheard = [
                np.where((other >= 0) & np.isfinite(code[other, b]), code[:, a] == code[other, b], np.nan)
                for other in lists
                for a, b in ((first, second), (second, first))
            ]
            kept.append(units[known])
            same.append((code[:, first] == code[:, second])[known].astype(float))
            chance.append(_row_means(unheard, len(units))[known])
    return _row(pd.concat(kept), np.concatenate(same), np.concatenate(chance))


def _row_means(columns: Sequence[np.ndarray], rows: int) -> Floats:
    """Means of the known values of each row, NaN where none is."""
    table = np.stack([np.asarray(column, dtype=float) for column in columns]) if columns else np.full((1, rows), np.nan)
    counts = np.isfinite(table).sum(axis=0)
    means: Floats = np.divide(np.nansum(table, axis=0), counts, out=np.full(rows, np.nan), where=counts > 0)
    return means


def _row(facets: pd.DataFrame, repeated: Any, chance: Any) -> dict[str, Any]:
    seen, expected = np.asarray(repeated, dtype=float), np.asarray(chance, dtype=float)
    excess = seen - expected
    known = np.isfinite(excess)
    by_base = nested_means(excess[known], facets.loc[known, ["cluster", "scenario"]])[0].to_numpy(dtype=float)
    row = tested(by_base)
    return row | {
        "share": float(seen.mean()) if len(seen) else np.nan,
        "chance": float(expected[known].mean()) if known.any() else np.nan,
        "n": len(seen),
        "note": row["note"] if known.any() else NO_CHANCE,
    }


def echo_words(table: pd.DataFrame, *, blind: bool | None = None, cluster: str = "base") -> Iterator[str]:
    """A sentence for every round in which judges repeat each other's words or scores beyond chance.

    With too few bases for a test, what was seen is said if it is more than `MUCH` above chance.

    Args:
        table: The table of `echo`.
        blind: Whether nobody heard anybody in round 1; None if it is not known.
        cluster: What the clusters are called.
    """
    nouns = {
        NEAR: "later statements repeated another judge's, word for word or nearly",
        SCORES: "pairs of judges gave exactly the same scores",
    }
    for _, prefix, rows in of_models(table):
        needed = clusters_to_reject(LEVEL, int(rows["p"].notna().sum()) or 1)
        for row in rows[rows["what"].isin(list(nouns)) & (rows["difference"] > 0)].itertuples():
            over = plural(row.clusters, cluster)
            if row.p_adjusted <= LEVEL:
                test = f"sign flips over {over}, p {p_text(row.p_adjusted)} after Holm correction"
            elif row.clusters < needed and row.difference > MUCH:
                test = f"{over}: too few to test"
            else:
                continue
            yield (
                f"{prefix}Phase {row.phase}, round {row.round}: {row.share:.0%} of {row.n:,} {nouns[row.what]}, on the "
                f"same text in another unit {row.chance:.0%} ({test}): {_meaning(row.round, blind)}."
            )


def _meaning(round: int, blind: bool | None) -> str:
    if round == 1 and blind:
        return "nobody heard anybody, so what they share is the prompt"
    return "judges who repeat what they heard are an echo, and do not count as further opinions"


def echo_section(data: PanelData, context: ReportContext) -> Section:
    """Whether judges repeat each other, as a table and sentences."""
    repeated, unit = echo(data, context.remarks() if context.remarks else None), data.cluster_noun
    table = Table(
        name="echo",
        title="Do judges repeat each other?",
        frame=repeated,
        note="Statements and sets of scores that repeat another judge's, beside the rate on the same text in "
        f"another unit, which nobody heard; difference: sign flips over {unit}s, Holm by model.",
    )
    return Section(tables=(table,), words=tuple(echo_words(repeated, blind=context.blind, cluster=unit)))
