"""What a run found, for the viewer's pages: the report that `parley report` writes by default, as data.

Cautions, sentences, forest plots and figures are the report's own, with the same draws and seed, so that a p-value is
the same wherever it is shown. With fewer draws of the viewer's own, one test had several p-values.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.agents import ParleyError
from parley.base.text import plural
from parley.reports import cautions
from parley.reports.cautions import unfinished_cautions
from parley.runs import RunFile
from parley.runs.matching import compared_values
from parley.runs.reading import why_nothing_is_done

if TYPE_CHECKING:
    from parley.analysis.reporting.report import Report

NOT_INSTALLED = "reports need pandas, SciPy and Matplotlib: pip install 'parley-autogen[analysis]'"
MAX_VERDICTS = 4_000_000
"""With more verdicts than this, the report takes too long for a page."""


def headline(file: RunFile, tell: Callable[[str], None] = lambda stage: None) -> dict[str, Any]:
    """What the run's page shows: the headline, cautions, sentences, forest plots, figures with their captions.

    `also` has the other questions of the report that have an answer.
    Figures have their picture, as SVG. Without a report, `unavailable` gives the reason.

    Args:
        file: the run.
        tell: is told what is being computed.
    """
    page: dict[str, Any] = {"cautions": [*cautions(file.info()["models"]), *unfinished_cautions(file.counts())]}
    if file.counts()["done"] == 0:
        return {**page, "unavailable": why_nothing_is_done(file)}
    verdicts = file.rows("SELECT count(*) FROM verdicts")[1][0][0]
    if verdicts == 0:
        return {**page, "unavailable": "this run has no verdicts"}
    if verdicts > MAX_VERDICTS:
        return {**page, "unavailable": "this run is too large for a report here: use parley report"}
    tell("loading the statistics")
    try:
        from parley.analysis.reporting.headline import headline as answer_of
        from parley.analysis.reporting.report import json_values
        from parley.reports import make_report
    except ModuleNotFoundError:
        return {**page, "unavailable": NOT_INSTALLED}
    tell(f"tests and intervals from {plural(verdicts, 'verdict')}")
    try:
        report = make_report([file.path])
    except (ParleyError, ValueError) as error:
        return {**page, "unavailable": str(error)}

    others = [answer_of(forest) for forest in report.forests]
    # A plot whose lines are not tested describes: its numbers are its answer.
    forests = [
        json_values(forest.data()) | {"answer": answer.answer if answer.tests else ""}
        for forest, answer in zip(report.forests, others, strict=True)
    ]
    # The question with an answer may not be the first.
    shown = [report.headline, *(answer for answer in others[1:] if answer.shown)]
    answers = [json_values(answer.data()) for answer in shown if answer]
    lines = [line for forest in report.forests for line in forest.lines]
    lines += [answer.line for answer in shown if answer and answer.line]
    pages = [line for forest in forests for line in forest["lines"]]
    pages += [answer["line"] for answer in answers if answer["line"]]
    for page_line, line in zip(pages, lines, strict=True):
        page_line["compared"] = compared_values(line)  # the order of its units, as in `parley show --finding`
    first = int(report.headline is not None)
    return {
        "headline": answers[0] if first else None,
        "also": answers[first:],
        "cautions": list(report.cautions),
        "sentences": report.sentences,
        "forests": forests,
        "figures": _pictures(report, tell),
    }


def comparison(path: Path, other: Path) -> dict[str, Any]:
    """The other run minus the first on the units that both have: the report of `parley compare RUN OTHER`.

    Args:
        path: the first run.
        other: the run that is compared with it.
    """
    try:
        from parley.analysis.reporting.report import json_values
        from parley.reports import compare_runs
    except ModuleNotFoundError:
        return {"unavailable": NOT_INSTALLED}
    try:
        report = compare_runs([path, other])
    except (ParleyError, ValueError) as error:
        return {"unavailable": str(error)}
    return {
        "headline": json_values(report.headline.data()) if report.headline else None,
        "cautions": list(report.cautions),
        "sentences": list(report.words),
        "forests": [json_values(forest.data()) for forest in report.forests],
        "units": next((json_values(table.frame) for table in report.tables if table.name == "largest"), []),
    }


def _pictures(report: Report, tell: Callable[[str], None]) -> list[dict[str, str]]:
    from parley.analysis.reporting.figures import as_svg
    from parley.analysis.reporting.report import SIMULATED

    stamp = SIMULATED if report.simulated else ""
    pictures = []
    for nth, figure in enumerate(report.figures, start=1):
        tell(f"figure {nth} of {len(report.figures)}")
        picture = as_svg(figure.draw(), stamp).decode()
        pictures.append({"name": figure.name, "caption": figure.caption, "svg": picture})
    return pictures
