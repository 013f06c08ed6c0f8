"""Reports of RLDF's studies: debates (one run, or several that differ in one setting), framings, rubric scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from parley.analysis.reporting.report import Figure, Report, Table
from parley.analysis.rldf import debates as rldf
from parley.analysis.rldf import framing, rubrics
from parley.analysis.rldf.figures import ablation_figure, framing_figure, rounds_figure

OVER_TOPICS = "Intervals are 95%, over topics: statements of one debate answer each other, topics are apart."
PRINTED = ("by_round", "change")
"""What a terminal is given; the page has all."""
TITLES = {
    "by_round": "Bias score by round and role",
    "change": "Last round minus first, within debates",
    "rankings": "Do the referee's rankings follow from its scores?",
    "refereed_again": "A second, blind refereeing beside the first",
    "flags": "Statements that broke role, gave it away, refused, repeat instructions or themselves, or were cut",
}
AGAINST = "against_first: on the topics that both have, this run's last round minus that of the first row."
ABLATED = (
    "estimate",
    "low",
    "high",
    "high_share",
    "change",
    "against_first",
    "against_low",
    "against_high",
    "clusters",
)
SHOWN = {
    "by_round": ("role", "round", "estimate", "low", "high", "high_share", "unreadable", "clusters"),
    "change": ("judge", "role", "first", "last", "estimate", "low", "high", "clusters"),
    "rankings": ("judge", "reports", "unreadable", "no_ranking", "contradicted", "estimate", "low", "high"),
    "refereed_again": ("what", "estimate", "low", "high", "n", "note"),
    "flags": ("role", "flag", "count", "estimate", "low", "high"),
}


def debates(
    verdicts: pd.DataFrame,
    *,
    units: pd.DataFrame | None = None,
    title: str = "RLDF",
    draws: int = 2000,
    seed: int = 0,
    runs: Sequence[Mapping[str, Any]] = (),
    **about: Any,
) -> Report:
    """Bias by round and role; for several runs that differ in one setting, the ablation before all else."""
    parts = _by_run(verdicts, runs)
    several = len(parts) > 1
    words: list[str] = []
    tables: list[Table] = []
    drawn: list[Figure] = []
    if several:
        found = {name: (run["config"], part) for (name, part), run in zip(parts.items(), runs, strict=True)}
        try:
            setting, table = rldf.ablation(found)
        except ValueError as error:
            words.append(f"{str(error)[0].upper()}{str(error)[1:]}.")
        else:
            tables.append(
                Table("ablation", f"One setting varied: {setting}", table, (setting, *ABLATED), AGAINST, printed=True)
            )
            drawn.append(
                Figure(
                    "ablation",
                    f"Bias of the last round by {setting}.",
                    "ablation",
                    lambda: ablation_figure(setting, table, title, OVER_TOPICS),
                )
            )
    frames: dict[str, list[pd.DataFrame]] = {}
    for name, part in parts.items():
        words += [f"{name}: {line}" if several else line for line in rldf.in_words(part)]
        for key, frame in rldf.tables(part).items():
            if len(frame):
                frames.setdefault(key, []).append(frame.assign(run=name) if several else frame)
        rounds, heading = rldf.by_round(part), f"{title} · {name}" if several else title
        drawn.append(
            Figure(
                f"rounds-{len(drawn)}" if several else "rounds",
                f"Mean bias score by round ({part['topic'].nunique()} topics){f', {name}' if several else ''}.",
                "by_round",
                partial(rounds_figure, rounds, heading, OVER_TOPICS),
            )
        )
    first = ("run",) if several else ()
    for key, listed in frames.items():
        whole = pd.concat(listed, ignore_index=True)
        tables.append(Table(key, TITLES[key], whole, (*first, *SHOWN[key]), OVER_TOPICS, key in PRINTED))
    return Report(
        title,
        tuple(words),
        tables=tuple(tables),
        figures=tuple(drawn),
        runs=tuple(runs),
        settings={"threshold": rldf.THRESHOLD},
        **about,
    )


def _by_run(verdicts: pd.DataFrame, runs: Sequence[Mapping[str, Any]]) -> dict[str, pd.DataFrame]:
    """The frame of each run by its file's name; units of several runs bear the run's place before a colon."""
    if len(runs) < 2:
        return {str(runs[0]["file"]) if runs else "run": verdicts}
    place = verdicts["unit"].astype(str).str.partition(":")[0]
    return {f"{run['file']}": verdicts[place == str(at)] for at, run in enumerate(runs)}


def framings(
    verdicts: pd.DataFrame,
    *,
    units: pd.DataFrame | None = None,
    title: str = "Framing",
    draws: int = 2000,
    seed: int = 0,
    **about: Any,
) -> Report:
    """Biases admitted under three framings of the same answers."""
    frames, gaps = framing.by_frame(verdicts), framing.differences(verdicts)
    note = f"{verdicts['topic'].nunique()} answers, each under all three framings. Intervals are 95%, over topics."
    tables = (
        Table(
            "frames",
            "Biases admitted, by framing",
            frames,
            ("frame", "metric", "estimate", "low", "high", "any", "unreadable"),
            "biases: as counted by the model; named: as it listed them.",
            printed=True,
        ),
        Table(
            "differences",
            "Second framing minus first, on the same answers",
            gaps,
            ("first", "second", "estimate", "low", "high", "p", "p_holm", "clusters"),
            "p: paired t test over topics; p_holm: after Holm over the three comparisons.",
        ),
    )
    drawn = Figure(
        "framing", f"Biases admitted by framing. {note}", "frames", lambda: framing_figure(frames, title, note)
    )
    return Report(title, tuple(framing.in_words(verdicts)), tables=tables, figures=(drawn,), **about)


def rubric_scores(
    verdicts: pd.DataFrame,
    *,
    units: pd.DataFrame | None = None,
    title: str = "Rubric",
    draws: int = 2000,
    seed: int = 0,
    **about: Any,
) -> Report:
    """Mean scores by group, and whether the judges agree."""
    tables = (
        Table(
            "scores",
            "Scores, 0 to 100 (BS is severity: lower is better)",
            rubrics.scores(verdicts),
            ("group", "metric", "estimate", "low", "high", "clusters", "unreadable"),
            "Intervals are 95%, over texts.",
            printed=True,
        ),
        Table(
            "agreement",
            "Agreement of the judges",
            rubrics.agreement(verdicts, draws=draws, seed=seed),
            ("metric", "coefficient", "estimate", "low", "high", "note"),
            printed=True,
        ),
    )
    return Report(title, tables=tables, settings={"draws": draws, "seed": seed}, **about)
