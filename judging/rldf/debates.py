"""RLDF's measures of whether debating lowers bias: bias by round and role, from a frame of verdicts.

A frame has one row per verdict: the unit's facets (bias, topic, mode, …) and judge, role, round, subject (the
speaker), metric (`bias`, `rank`, `role_break`, `leak`, `refused`, `cut`, `shortened`), value, status. Statements of
one debate answer each other, and debates on one topic are similar: every interval is over topics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from parley.analysis.decide import concluded
from parley.analysis.effects import ALL, Estimand, Question, adjusted_differences, answer, estimates, share, successive
from parley.analysis.page.report import Section, joined, section
from parley.analysis.say import Forest, stated
from parley.analysis.stats.results import About, Line
from parley.analysis.verdicts import uncategorised
from parley.base.text import plural
from parley.judging.rldf.referee import AGAIN, BIAS, REFEREE

THRESHOLD = 3.0
SAME_DEBATES = "Referee, debates of Referee_again"
FEW_TOPICS = 10

Runs = Mapping[str, pd.DataFrame]
"""The verdicts of each run by its file name; a report of one run has one."""
JUDGES = {
    REFEREE: "referee, who knows the round",
    AGAIN: "second referee, blind",
    SAME_DEBATES: "first referee, on the blind one's debates",
}
CLUSTERS = "Clusters are topics: statements of one debate are not independent, topics are."
STORED_AS: dict[str, tuple[tuple[str, str], ...]] = dict.fromkeys(("run", "judge", "role", "round", "subject"), ())


def heading(about: About) -> tuple[str, ...]:
    """A line's heading: the run, if there are several, and the referee."""
    return (*filter(None, [about.run]), JUDGES[about.judge])


def _role(about: About) -> str:
    return "all roles" if about.role == ALL else about.role


def _planned(about: About) -> bool:
    return (about.role, about.judge) == (ALL, REFEREE)


def _scores_lower(line: Line) -> str:
    """Such as "the referee, who knows the round, scores all roles 1.62 points lower in round 2 than in round 1"."""
    assert line.about.contrast
    last, first = line.about.contrast.names
    run = f"in {line.about.run}, " * bool(line.about.run)
    way = "lower" if line.estimate < 0 else "higher"
    size = f"{abs(line.estimate):.2f} points of 10 {way}"
    return f"{run}the {JUDGES[line.about.judge]}, scores {_role(line.about)} {size} in {last} than in {first}"


def _of_change(about: About, measure: str, rows: pd.DataFrame) -> dict[str, Any]:
    return {
        "label": _role(about),
        "group": heading(about),
        "units": units_of(about.judge),
        "secondary": not _planned(about),
    }


def _of_round(about: About, measure: str, rows: pd.DataFrame) -> dict[str, Any]:
    label, group = f"round {about.columns['round']}", (*heading(about), _role(about))
    return {"label": label, "group": group, "units": units_of(about.judge)}


CHANGE = Question(
    name="change",
    ask="Does debating change the bias score?",
    measures={"score": Estimand(words="change of the bias score, last round minus first", says=_scores_lower)},
    unit="points of 10",
    by=("run", "judge", "role"),
    arms="round",
    pairs=successive,
    item=("unit",),
    cluster="topic",
    facets=STORED_AS,
    paper="3.1, falling scores",
    note="Clusters are topics; below 0 the score fell. All roles by the first referee are planned; all other lines are "
    "a second family.",
    further=_of_change,
)
ROUNDS = Question(
    name="by_round",
    ask="How biased is each round?",
    measures={"score": "bias score"},
    unit="points of 10",
    by=("run", "judge", "role", "round"),
    cluster="topic",
    facets=STORED_AS,
    paper="3.1, scores by round",
    note=CLUSTERS,
    further=_of_round,
    stated=False,
)
SHARES = replace(
    ROUNDS,
    name="high_bias",
    ask="How many statements of each round are highly biased?",
    unit="",
    measures={"high": f"statements with a score above {THRESHOLD:g}", "unread": "scores that could not be read"},
    level=share,
    scale="share",
)


def units_of(judge: str) -> dict[str, tuple[str, ...]]:
    """The facets of the debates that a referee scored; a blind one may have scored only some."""
    return {} if judge == REFEREE else {"again": ("true",)}


def of_runs(runs: Runs, metrics: Collection[str]) -> pd.DataFrame:
    """The verdicts of every run with these metrics, and the column `run`."""
    rows = (
        uncategorised(verdicts[verdicts["metric"].isin(metrics)]).assign(run=name) for name, verdicts in runs.items()
    )
    return pd.concat(rows, ignore_index=True)


def of_one(question: Question, runs: Runs) -> Question:
    """The question, without the column `run` if there is only one."""
    return question if len(runs) > 1 else replace(question, by=tuple(name for name in question.by if name != "run"))


def prefix(runs: Runs, name: str) -> str:
    """The beginning of a sentence: the run's name, if there are several."""
    return f"{name}: " if len(runs) > 1 else ""


def scores(verdicts: pd.DataFrame, judge: str = REFEREE) -> pd.DataFrame:
    """The referee's scores, one row per statement; `value` is NaN if the report could not be read."""
    return uncategorised(verdicts[(verdicts["metric"] == BIAS) & (verdicts["judge"] == judge)])


def statements(runs: Runs) -> pd.DataFrame:
    """One row per scored statement for its role, and one for all roles.

    If only some debates were scored again, the first referee's scores of those appear once more, to compare the
    referees on the same debates.
    """
    parts = []
    for name, verdicts in runs.items():
        first, again = scores(verdicts), scores(verdicts, AGAIN)
        both = set(again.dropna(subset=["value"])["unit"])
        some = first["unit"].isin(both) & (len(both) < verdicts["unit"].nunique())
        for scored in (first, again, first[some].assign(judge=SAME_DEBATES)):
            roles = scored[scored["judge"] != SAME_DEBATES]
            parts.append(pd.concat([scored.assign(role=ALL), roles.assign(role=roles["subject"])]).assign(run=name))
    frame = pd.concat(parts, ignore_index=True).rename(columns={"value": "score"})
    high = (frame["score"] > THRESHOLD).astype(float).where(frame["score"].notna())
    return frame.assign(high=high, unread=frame["score"].isna().astype(float))


def changes(runs: Runs) -> list[Line]:
    """Last round minus first, within each debate; below 0 the debate lowered the score."""
    return [concluded(line) for line in undecided_changes(runs)]


def undecided_changes(runs: Runs) -> list[Line]:
    """The same without verdicts."""
    frame = statements(runs)
    rounds = frame.groupby("run")["round"]
    ends = frame[(frame["round"] == rounds.transform("min")) | (frame["round"] == rounds.transform("max"))]
    keys = ["run", "judge", "role", "topic", "unit", "round"]
    by_debate = ends.groupby(keys, sort=False)["score"].mean().reset_index().sort_values("round", kind="stable")
    by_debate["round"] = "round " + by_debate["round"].astype(str)
    lines = estimates(of_one(CHANGE, runs), by_debate)
    return adjusted_differences([line for line in lines if line.n], family=())


def by_round(runs: Runs) -> tuple[list[Line], ...]:
    """Mean bias score by round, for all roles and for each, and the shares of high and of unread scores."""
    frame = statements(runs)
    frame = frame[(frame["role"] == ALL) | (frame["judge"] == REFEREE)]
    measures = {name: words for name, words in SHARES.measures.items() if name != "unread" or frame["unread"].any()}
    means, shares = (answer(of_one(question, runs), frame) for question in (ROUNDS, replace(SHARES, measures=measures)))
    groups = list(dict.fromkeys(line.group for line in means))
    return tuple(
        sorted(lines, key=lambda line: (groups.index(line.group), float(line.about.columns["round"])))
        for lines in (means, shares)
    )


def change_section(runs: Runs) -> Section:
    """The section on whether debating lowers the score. Only scores by the referee over all roles are planned."""
    lines = changes(runs)
    made = section(CHANGE, lines)
    few = {name: count for name, verdicts in runs.items() if (count := verdicts["topic"].nunique()) < FEW_TOPICS}
    return replace(
        made,
        warnings=[
            f"{prefix(runs, name)}Only {plural(count, 'topic')}: intervals are wide, and a real change may have been "
            "missed."
            for name, count in few.items()
        ],
        words=[sentence for line in lines for sentence in _on_change(line, lines, made.forests[0])],
    )


def _on_change(line: Line, lines: Sequence[Line], forest: Forest) -> Iterator[str]:
    """Sentences on the planned line of a run, on the blind referee, and on each role with a significant change."""
    all_roles = line.about.role == ALL and line.about.judge in (REFEREE, AGAIN)
    if not (all_roles or (line.about.judge == REFEREE and line.shown)):
        return
    says = stated("", _scores_lower(line), line, forest, "topic")
    yield says if line.shown else f"{says} No change was shown, which does not show that there is none."
    alone = not any(other.about.judge == AGAIN and other.about.run == line.about.run for other in lines)
    if _planned(line.about) and line.shown and alone:
        yield (
            "The referee knows which round it scores, so part of the change may be its own expectation (--rereferee "
            "adds a blind one)."
        )


def rounds_section(runs: Runs) -> Section:
    """The section on the bias of each round."""
    means, shares = by_round(runs)
    warnings = []
    for name, verdicts in runs.items():
        first = scores(verdicts)["value"]
        if unread := int(first.isna().sum()):
            warnings.append(f"{prefix(runs, name)}{unread:,} of {plural(len(first), 'score')} could not be read.")
    return joined([section(ROUNDS, means), section(SHARES, shares), Section(warnings=warnings)])
