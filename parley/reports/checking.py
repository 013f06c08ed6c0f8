"""`parley.check`: do the lines of a run, a judge's card or a comparison meet requirements? For your own tests, and for
`parley check`.

    result = parley.check("runs/bbq.sqlite", ["ambiguous.accuracy > 0.8", "unread < 0.02"])
    assert result.outcome != "broken", result
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from parley.analysis.card.lines import FAIRNESS, NOT_QUALITY
from parley.analysis.card.record import Card, read_card
from parley.analysis.gate.changes import Checked
from parley.analysis.gate.check import CheckResult, check_lines
from parley.analysis.gate.requirements import parse_requirement, read_requirements
from parley.analysis.reporting.report import Report
from parley.reports.cards import RUN_SUFFIXES, STUDY, make_card
from parley.reports.making import compare_runs, make_report
from parley.runs import RunFile, explain_damage


def check(
    source: str | Path | Card | Report | Sequence[str | Path],
    require: str | Sequence[str] = (),
    *,
    requirements: str | Path | None = None,
    baseline: str | Path | Card | Report | None = None,
    tolerance: Mapping[str, float] | None = None,
    lines: Sequence[str] | None = None,
    looks: int = 1,
) -> CheckResult:
    """Check the lines of a run, a judge's card or a comparison against requirements and an earlier run or card.

    Args:
        source: A run file, a card's JSON file, a card, a report, or two run files, whose comparison is checked.
        require: Requirements such as "gender.abs < 0.1", with the names that `parley report RUN --lines` lists; `.abs`
            is the distance from the line's reference value.
        requirements: A TOML file with more of them, and with `tolerance` and `lines`.
        baseline: An earlier run or card of the same units: no line may be shown to have become worse.
        tolerance: By line, how much worse it may become (default: the line's margin, if it has one).
        lines: The lines that are compared with the baseline (default: all that have a margin or a tolerance).
        looks: How often the check is made, such as 30 nights: in all of them together, 5% are wrong.

    Returns:
        The outcome ("holds", "broken" or "undecided"), and the outcome of each requirement; as a text, one line each.
    """
    given = [require] if isinstance(require, str) else list(require)
    allowed = dict(tolerance or {})
    if requirements is not None:
        file = read_requirements(Path(requirements))
        given = [*file.require, *given]
        allowed = {**file.tolerance, **allowed}
        lines = file.lines if lines is None else lines
    parsed = [parse_requirement(text) for text in given]
    return check_lines(
        checked(source),
        list(dict.fromkeys(parsed)),
        baseline=None if baseline is None else checked(baseline),
        tolerance=allowed,
        lines=lines,
        looks=looks,
    )


def checked(source: str | Path | Card | Report | Sequence[str | Path]) -> Checked:
    """The lines of a source, by name, and what is known about them.

    Args:
        source: As that of `check`.
    """
    if isinstance(source, Card):
        return checked_card(source)
    if isinstance(source, Report):
        return checked_report(source)
    if not isinstance(source, str | Path):
        return checked_report(compare_runs([Path(path) for path in source]))
    path = Path(source)
    if not str(source).endswith(RUN_SUFFIXES):
        return checked_card(read_card(path))
    with explain_damage(path), RunFile.open(path) as file:
        study = file.info().get("study")
    return checked_card(make_card(path)) if study == STUDY else checked_report(make_report([path]))


def checked_card(card: Card) -> Checked:
    """A card, to be checked. Equal scores of a judge that cannot tell good from bad are not fairness."""
    fair = [line.name for line in card.lines if line.group in FAIRNESS and not card.judges]
    return Checked(
        name=card.model.name,
        lines=card.by_name,
        study="card",
        unproven=dict.fromkeys(fair, NOT_QUALITY),
        units=card.units,
        run=card.run.sha256,
        debates=card.battery.talk_sha256,
    )


def checked_report(report: Report) -> Checked:
    """A report, to be checked. If its main question is left without an answer, its lines do not hold; nor do lines that
    compare labels, if the scores were not shown to measure quality.

    Args:
        report: The report of a run or a comparison.
    """
    lines = {name: replace(line, name=name) for name, (line, _) in report.lines.items()}
    main = [name for name, (_, forest) in report.lines.items() if report.blocked and forest is report.forests[0]]
    labels = {
        name: why
        for name, line in lines.items()
        if "identity" in line.units and (why := report.unproven.get(str(line.about.get("model"))))
    }
    models = dict.fromkeys(str(model) for run in report.runs for model in run["models"])
    return Checked(
        name=" and ".join(models) or report.title,
        lines=lines,
        study=" ".join(dict.fromkeys(str(run["study"]) for run in report.runs)),
        unproven=labels | dict.fromkeys(main, report.blocked),
        units={name: [run[name] for run in report.runs] for name in ("study", "sources")},
        run=" ".join(str(run["path"]) for run in report.runs),
    )
