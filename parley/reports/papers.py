"""A paper's page: whether its claims hold in our runs, and its tables with our numbers.

paper_report("stardtox", [load_run(path) for path in paths])      # runs of several studies
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pandas as pd

from parley.agents import ConfigError
from parley.analysis.claims.contrasts import VALUES
from parley.analysis.claims.page import claims_table, layouts
from parley.analysis.claims.rule import Finding, find
from parley.analysis.page.report import SIMULATED, Report, Table
from parley.analysis.verdicts import MissingColumns
from parley.judging.papers import PAPERS, paper, printed
from parley.reports.loading import LoadedRun, all_models
from parley.reports.unfinished import cautions_on, without_early_verdicts
from parley.runs.studies import find_claims


def paper_report(name: str, runs: Sequence[LoadedRun], systems: Mapping[str, str] = MappingProxyType({})) -> Report:
    """The page of a paper over several runs, which may be of several studies: its claims, then its tables.

    Args:
        name: The paper: "stardtox".
        runs: The runs, as `load_run` reads them.
        systems: The names of trained models in the paper's tables, by the models' names: {"hf/out/rl": "RLDF"}. They
            stand beside the other models of the runs.
    """
    if name not in PAPERS:
        raise ConfigError(f"there is no paper '{name}': choose one of {', '.join(PAPERS)}")
    values = values_of(runs)
    trained = values["model"].map(dict(systems)).astype(object)
    values = values.assign(method=trained.fillna(values["method"]), model=values["model"].where(trained.isna(), ""))
    tables, _ = _tables(name, [run for run in runs if not set(run.models) <= set(systems)], values)
    report = Report(
        title=f"{paper(name).title}: claims and tables",
        cautions=cautions_on(runs),
        tables=tuple(tables),
        runs=tuple(run.record() for run in runs),
        subject=paper(name).title,
    )
    return without_early_verdicts(report, runs)


def values_of(runs: Sequence[LoadedRun]) -> pd.DataFrame:
    """The values of runs for papers' claims, with the columns VALUES; of several runs of one method their mean.

    Args:
        runs: The runs.
    """
    frames = [pd.DataFrame(columns=list(VALUES))]
    for run in runs:
        if values := find_claims(run.study):
            try:
                frames.append(values(run.verdicts))
            except MissingColumns as error:
                raise ConfigError(f"{run.path} cannot be reported as a run of '{run.study}': {error}") from None
    return pd.concat([frame for frame in frames if len(frame)] or frames, ignore_index=True)


def claims_of_run(runs: Sequence[LoadedRun]) -> list[Table]:
    """The tables of every paper of which the runs measure a claim.

    Args:
        runs: Runs of one study.
    """
    values = values_of(runs)
    made = {name: _tables(name, runs, values) for name in PAPERS}
    measured = {
        name: tables
        for name, (tables, found) in made.items()
        if any(each.evidence for each in found) or len(tables) > 1
    }
    return [
        replace(table, name=f"{name}_{table.name}") if len(measured) > 1 else table
        for name, tables in measured.items()
        for table in tables
    ]


def _tables(name: str, runs: Sequence[LoadedRun], values: pd.DataFrame) -> tuple[list[Table], list[Finding]]:
    """A paper's claims with verdicts, and its tables."""
    of_paper, cells = paper(name), printed(name)
    findings = find(of_paper.claim, values, cells)
    models = ", ".join(dict.fromkeys(model.partition("?")[0] for model in all_models(runs)))
    simulated = any(SIMULATED in line for line in cautions_on(runs))
    title = f"Do the claims of {of_paper.title} hold? Theirs: {', '.join(of_paper.models)}. Ours: {models}"
    unfinished = any(run.unit_counts["planned"] for run in runs)
    claims = claims_table(findings, simulated=simulated, unfinished=unfinished, title=title)
    return [claims, *layouts(values, cells, of_paper)], findings
