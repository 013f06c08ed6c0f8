"""The one rule by which a claim is replicated, contrary or undecided.

p-values are corrected by Holm over all testable rows of the claims' file, whether or not a run has their values: what a
run leaves out cannot make the rest significant. A size is only replicated if its direction is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd

from parley.analysis.claims.claim import UNTESTED, Claim, Row, rows_of
from parley.analysis.claims.contrasts import Evidence, Missing, Values, evidence
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.power import power_of
from parley.analysis.stats.results import ALPHA, clusters_to_reject

Verdict = Literal[
    "replicated", "contrary", "contrary in size", "undecided", "not measured", "not testable", "by construction"
]
REPLICATED: Verdict = "replicated"
CONTRARY: Verdict = "contrary"
CONTRARY_IN_SIZE: Verdict = "contrary in size"
UNDECIDED: Verdict = "undecided"
NOT_MEASURED: Verdict = "not measured"
PRINTED = ("table", "model", "measure", "set", "method", "value")
"""The columns of a frame of a paper's printed values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A row with its verdict for one model.

    Args:
        row: What is claimed.
        model: The model whose values these are; "" if there are none.
        evidence: The evidence; None without values.
        p: The corrected p-value of the claim.
        p_against: The corrected p-value of its opposite.
        tests: Number of rows that p-values are corrected for.
        verdict: What follows.
        why: Why there is no other verdict; "" if that is clear.
        paper: The paper's own values of the same comparison, by its models.
        power: The chance of "replicated" if the paper's values were true; NaN where that cannot be told.
    """

    row: Row
    model: str = ""
    evidence: Evidence | None = None
    p: float = math.nan
    p_against: float = math.nan
    tests: int = 0
    verdict: Verdict = NOT_MEASURED
    why: str = ""
    paper: tuple[tuple[str, Evidence], ...] = ()
    power: float = math.nan

    @property
    def claim(self) -> Claim:
        return self.row.claim

    @property
    def papers_models_that_hold(self) -> list[bool]:
        """For each of the paper's models, whether its printed values bear the claim out."""
        if self.claim.holds is not None:
            return [self.claim.holds]
        return [all((part > 0).all() for one in each.comparisons for part in one.parts) for _, each in self.paper]


def find(claims: Sequence[Claim], values: pd.DataFrame, printed: pd.DataFrame) -> list[Finding]:
    """The findings on every row of a paper's claims, for each model of the values that the claim may be about.

    Args:
        claims: All claims of the paper's file.
        values: Our values, with the columns VALUES.
        printed: The paper's, with the columns PRINTED.
    """
    rows = rows_of(claims)
    models = [str(name) for name in dict.fromkeys(values["model"]) if name] or [""]
    by_model = {name: Values(values[values["model"].isin((name, ""))]) for name in models}
    findings = {name: _findings(rows, by_model[name], printed, name) for name in models}
    return [findings[name][place] for place, row in enumerate(rows) for name in _about(row.claim, models)]


def _about(claim: Claim, models: Sequence[str]) -> Sequence[str]:
    """The models that a claim is tested on: the one that it names, if there is one; all, if not."""
    named = [name for name in models if claim.model and _plain(claim.model) in _plain(name)]
    return models[:1] if claim.form in UNTESTED else named or models


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def _findings(rows: Sequence[Row], values: Values, printed: pd.DataFrame, model: str) -> list[Finding]:
    tests = sum(row.claim.form not in UNTESTED for row in rows)
    measured = [_measured(Finding(row=row, model=model, tests=tests), values, printed) for row in rows]
    corrected = [_holm(measured, lambda each: each.p_for), _holm(measured, lambda each: each.p_against)]
    decided: list[Finding] = []
    for finding, p, p_against in zip(measured, *corrected, strict=True):
        direction = decided[-1] if finding.row.size else None
        if direction:
            p = max(p, direction.p)
        tested = replace(finding, p=p, p_against=p_against)
        verdict, why = _verdict(tested, direction)
        decided.append(replace(tested, verdict=verdict, why=why))
    return decided


def _holm(findings: Sequence[Finding], p_of: Callable[[Evidence], float]) -> list[float]:
    """The corrected p-values of one side; a testable row without values counts as one with p = 1."""
    testable = [place for place, each in enumerate(findings) if each.claim.form not in UNTESTED]
    given = [math.nan if (proof := findings[place].evidence) is None else p_of(proof) for place in testable]
    corrected = dict(zip(testable, holm([1.0 if math.isnan(p) else p for p in given]), strict=True))
    unknown = {place for place, p in zip(testable, given, strict=True) if math.isnan(p)}
    return [math.nan if place in unknown else corrected.get(place, math.nan) for place in range(len(findings))]


def _measured(finding: Finding, values: Values, printed: pd.DataFrame) -> Finding:
    """The finding with the evidence on it, and the paper's own."""
    row = finding.row
    if row.claim.form in UNTESTED:
        return finding
    paper = tuple(_printed(row, printed))
    try:
        given = evidence(row, values.table(row))
    except Missing as missing:
        return replace(finding, paper=paper, why=f"needs {missing}")
    return replace(finding, evidence=given, paper=paper, power=_power(finding, given, paper))


def _printed(row: Row, printed: pd.DataFrame) -> Iterator[tuple[str, Evidence]]:
    """The same comparison of the paper's printed values, for each of its models."""
    of_row = printed[(printed["measure"] == row.measure) & (printed["set"] == row.set)]
    named = of_row[of_row["model"].isin((row.claim.model, ""))] if row.claim.model else of_row
    if row.claim.form in ("differ", "unrelated"):
        return
    for model in [name for name in dict.fromkeys(named["model"]) if name] or [""]:
        cells = named[named["model"].isin((model, ""))]
        table = (
            cells.drop_duplicates("method")
            .assign(item=model, cluster=model)
            .pivot(index=["cluster", "item"], columns="method", values="value")
        )
        try:
            yield str(model), evidence(row, table)
        except Missing:
            continue


def _power(finding: Finding, given: Evidence, paper: Sequence[tuple[str, Evidence]]) -> float:
    """The chance to find the paper's own value, by the spread of our clusters, at Holm's first step."""
    deciding = given.deciding
    theirs = [
        float(part[0])
        for _, each in paper
        for one in each.comparisons
        if one.rival == deciding.rival
        for part in one.parts[:1]
    ]
    if not theirs or not deciding.parts:
        return math.nan
    ours, effect = deciding.parts[0], sum(theirs) / len(theirs)
    if effect <= 0 or len(ours) < 2:
        return math.nan
    return power_of(len(ours), effect, float(ours.std(ddof=1)), tests=finding.tests)


def _verdict(finding: Finding, direction: Finding | None) -> tuple[Verdict, str]:
    """The verdict, and the reason if it needs one.

    Args:
        finding: The finding, with corrected p-values.
        direction: Of a size, the finding on the direction.
    """
    claim, given = finding.claim, finding.evidence
    if claim.form == "not testable" or claim.form == "by construction":
        return claim.form, claim.why
    if given is None:
        return NOT_MEASURED, finding.why
    few = f"too few: at least {claim.least} clusters" if given.clusters < claim.least else ""
    if finding.p <= ALPHA and not few and not given.missing:
        return REPLICATED, ""
    if finding.p_against <= ALPHA:
        of_size = direction is not None and direction.verdict != CONTRARY
        return CONTRARY_IN_SIZE if of_size else CONTRARY, ""
    if given.missing:
        return NOT_MEASURED, f"needs {given.missing}"
    needed = clusters_to_reject(ALPHA, finding.tests)
    if not few and given.clusters < needed:
        few = f"too few: {finding.tests} tests need at least {needed} clusters"
    return UNDECIDED, few
