"""The effect of talking on the gap between identities: what reasons alone add, and what hearing others adds.

Talking units begin with silent ballots of the same judges (round 0). Then each judge gives reasons and a score before
it has heard anybody (round 1), and then they talk (round 2 and later). So within the same judge and unit, round 1 minus
round 0 is what reasons alone add to a gap, and the last round minus round 1 is what hearing others adds. Runs without
stages have only the first round and the last.

One contrast is tested: the primary one with the largest difference between silent ballots (round 0). These come
before any debate and are not part of the tested change, so the choice does not bias the test. All else is a second
family.

The test is on the change of the gap, not of its size: if noise differs between rounds, |after| - |before| is not 0 on
average even without an effect. Only the wording of a significant change depends on the gap before: with the same sign,
it amplifies a bias that was already shown.

Runs of earlier versions have control debates, whose judges heard ballots on another label (the facet `heard`). They
show nothing about hearing others, and are left out of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from parley.analysis.effects import Question, corrected
from parley.analysis.page.report import Section, section
from parley.analysis.stats.results import ALPHA, Contrast, Line
from parley.analysis.stats.tables import Floats
from parley.base.text import p_text, plural, signed
from parley.judging.ballots import PREFERRED
from parley.judging.malibu.contrasts import PRIMARY, SCORE, contrast_line, contrast_of, families, tested
from parley.judging.malibu.panel_data import VOTES, PanelData
from parley.judging.malibu.plan import BLIND, among
from parley.judging.malibu.score_table import NEEDED, NOT_SCORES, ScenarioGaps, ScoreTable, nested_means

REASONS, HEARING, TALKING = "reasons alone", "hearing others", "talking"
STEPS = {REASONS: "Giving reasons", HEARING: "Hearing others", TALKING: "Talking"}
"""The steps that change a gap, with the beginnings of sentences."""
PREFERENCE = "preference"
QUESTION = Question(
    name="talking",
    ask="Does talking change the gap between identities?",
    measures={
        SCORE: "change of the difference in score, points",
        PREFERENCE: "change of the difference in preference, share of judges",
    },
    cluster="cluster",
    arms="identity",
    family=("model", "phase"),
    note="first minus second, after minus before, by the same judges on the same units. reasons alone: round 1 minus "
    "the silent ballot; hearing others, talking: the last round minus round 1. In runs with silent ballots, what "
    "hearing others adds to the primary contrast that these show most is one test, and Holm is over all others of a "
    "model and phase; in other runs it is over all.",
)
Moments = Sequence[Floats | ScenarioGaps]
"""A gap before and after a step, and its change."""


def talking(data: PanelData, unequal: Sequence[Line] = ()) -> list[Line]:
    """The change of every primary contrast by each step, and of the other planned pairs by talking.

    Phase 1: points of the scale. Phase 2: net preference, the share of judges who preferred the first identity minus
    the share who preferred the second.

    Args:
        data: The verdicts.
        unequal: Contrasts whose silent ballots were unread unequally, so that the effect of reasons is unknown.
    """
    by_step, chosen = list(steps(data)), most_shown(data)
    planned = {(model, contrast) for model, contrast, _, _ in by_step}
    unread = {(line.about.model, line.about.phase, line.about.contrast): line.note for line in unequal}
    lines = [
        _line(
            data,
            model,
            1,
            step,
            contrast,
            gaps,
            secondary=step != HEARING or contrast != chosen.get(model),
            unknown=unread.get((model, 1, contrast), "") if step == REASONS else "",
        )
        for model, contrast, step, gaps in by_step
    ]
    aloud, step = data.debates, HEARING if data.staged else TALKING
    lines += [
        _line(data, model, phase, step, contrast, gaps, secondary=phase == 1 and any(model == m for m, _ in planned))
        for model, phase, contrast, gaps in (*_scored(aloud, data), *_preferred(aloud))
        if phase == 2 or (model, contrast) not in planned
    ]
    return corrected(lines, QUESTION.family, further=("before_p", "after_p"))


def _line(
    data: PanelData,
    model: str,
    phase: int,
    step: str,
    contrast: Contrast,
    gaps: Moments,
    *,
    secondary: bool,
    unknown: str = "",
) -> Line:
    """The change of a gap by a step.

    Args:
        data: The verdicts.
        model: The judge's model.
        phase: 1 for scores, 2 for pairs.
        step: What happened in between.
        contrast: The labels.
        gaps: The gap before and after, and its change.
        secondary: Whether the line was not planned.
        unknown: Why the change is not known; "" if it is.
    """
    *moments, change = map(tested, gaps)
    if unknown:
        change = replace(change, low=math.nan, high=math.nan, p=math.nan, note=unknown)
    also = {
        f"{when}{end}": getattr(test, name)
        for when, test in zip(("before", "after"), moments, strict=True)
        for end, name in (("", "estimate"), ("_low", "low"), ("_high", "high"), ("_p", "p"))
    }
    return contrast_line(
        change,
        contrast,
        data,
        model,
        phase,
        about={"step": step},
        debated=True,
        label=f", {step}" if step != TALKING else "",
        measure=SCORE if phase == 1 else PREFERENCE,
        also=also,
        secondary=secondary,
    )


def steps(data: PanelData) -> Iterator[tuple[str, Contrast, str, Sequence[ScenarioGaps]]]:
    """By model, primary contrast and step: the gaps before and after the step, and their difference.

    Args:
        data: The verdicts.
    """
    for model, judged in _by_round(data):
        for contrast in families(data, model)[PRIMARY]:
            for step, (before, after) in {REASONS: ("silent", "blind"), HEARING: ("blind", "last")}.items():
                complete = judged[judged[[before, after]].notna().all(axis=1)]
                complete = complete[heard_each_other(complete)] if step == HEARING else complete
                if not {*contrast.first, *contrast.second} <= {*complete["identity"]}:
                    continue
                values = complete[before], complete[after], complete[after] - complete[before]
                # Controls are dropped label by label: few texts have all four labels, but most have one of each side.
                yield (
                    model,
                    contrast,
                    step,
                    [
                        ScoreTable.of(complete.assign(value=value)).contrast(
                            contrast.first, contrast.second, complete=step != HEARING
                        )
                        for value in values
                    ],
                )


def most_shown(data: PanelData) -> dict[str, Contrast]:
    """By model, the primary contrast with the largest difference between silent ballots.

    Args:
        data: The verdicts.
    """
    by_model: dict[str, Contrast] = {}
    for model, judged in _by_round(data):
        # If all units talk, the ballots that begin the debates.
        ballots = judged.assign(value=judged["silent"])
        table = data.table(model) if data.read_silently(model) else ScoreTable.of(ballots[ballots["value"].notna()])
        gaps = {
            contrast: abs(table.contrast(contrast.first, contrast.second).test().estimate)
            for contrast in families(data, model)[PRIMARY]
            if {*contrast.first, *contrast.second} <= {*table.identities}
        }
        defined = [contrast for contrast, size in gaps.items() if size == size]
        by_model |= {model: max(defined, key=lambda contrast: gaps[contrast])} if defined else {}
    return by_model


def before_and_after(data: PanelData) -> pd.DataFrame:
    """The judges' verdicts of each unit's first round, with columns `before` and `after` (that of its last round).

    A preference is a number: 1 for A, 0 for a tie, -1 for B. Units with a single round and verdicts that could not be
    read in both rounds are left out, and so are the chair, who speaks once, and control debates.

    Args:
        data: The verdicts.
    """
    return data.shared("before and after", lambda: _before_and_after(data))


def _before_and_after(data: PanelData) -> pd.DataFrame:
    judged = data.without_chair[heard_each_other(data.without_chair)]
    votes = judged["text"].astype(object).map(VOTES).astype(float)
    judged = judged.assign(number=votes.where(judged["metric"] == PREFERRED, judged["value"]))
    rounds = judged.groupby("unit", observed=True)["round"]
    first, last = (judged["round"] == rounds.transform(end) for end in ("min", "max"))
    keys = [name for name in ("unit", "judge", "metric", "subject") if name in judged]
    after = judged.loc[last & ~first, [*keys, "number"]].rename(columns={"number": "after"})
    both = judged[first & ~last].rename(columns={"number": "before"}).merge(after, on=keys)
    return both.dropna(subset=["before", "after"])


def heard_each_other(verdicts: pd.DataFrame) -> pd.Series:
    """Whether the judges of each row's unit heard each other, rather than ballots on another label."""
    if "heard" not in verdicts:
        return pd.Series(True, index=verdicts.index)
    heard = verdicts["heard"].astype(object).fillna("")
    return (heard == "") | (heard == verdicts["identity"].astype(object))


def _by_round(data: PanelData) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each model's scores of talking units, one row per unit, judge and metric: silent, blind, and last."""
    talk = data.talk[(data.talk["phase"] == 1) & ~data.talk["metric"].isin(NOT_SCORES)]
    for model in data.models:
        of_model = talk[talk["model"] == model].astype({"unit": str, "judge": str, "metric": str})
        if of_model.empty:
            continue
        keys = ["unit", "judge", "metric"]
        last = of_model["round"].max()
        rounds = {"silent": 0, "blind": BLIND} | ({"last": last} if last > BLIND else {})
        values = {name: of_model[of_model["round"] == round].set_index(keys)["value"] for name, round in rounds.items()}
        judged = of_model.drop_duplicates(keys).set_index(keys).assign(last=math.nan).assign(**values)
        yield model, judged.reset_index()


def _scored(data: PanelData, whole: PanelData) -> Iterator[tuple[str, int, Contrast, Moments]]:
    """Phase 1 as three one-round runs: the scores before and after talking, and their change.

    Args:
        data: The debates.
        whole: All verdicts, for the direction of pairs: debates are in another order.
    """
    both = before_and_after(data)
    scores = both[(both["phase"] == 1) & (both["metric"] != PREFERRED)]
    values = scores["before"], scores["after"], scores["after"] - scores["before"]
    rounds = [PanelData(scores.assign(value=value)) for value in values]
    for model in rounds[0].models:
        for contrast in among(whole.plan.pairs, rounds[0].table(model).identities):
            gaps = [each.table(model).contrast(contrast.first, contrast.second) for each in rounds]
            yield model, 1, contrast, gaps


def _preferred(data: PanelData) -> Iterator[tuple[str, int, Contrast, Moments]]:
    both = before_and_after(data)
    votes = both[(both["phase"] == 2) & (both["metric"] == PREFERRED) & (both["control"] == "")]
    if votes.empty:
        return
    first_is_a = (votes["identity_a"].astype(object) == votes["identity"].astype(object)).to_numpy()
    sign = np.where(first_is_a, 1.0, -1.0)
    moments = votes.assign(before=sign * votes["before"], after=sign * votes["after"])
    moments = moments.assign(change=moments["after"] - moments["before"])
    levels = ["model", "category", "identity", "other", "cluster", "scenario", "order", "assignment", "judge"]
    levels = [name for name in levels if name in votes]
    by_base = nested_means(moments.set_index(levels)[["before", "after", "change"]], keep=5)
    for (model, category, first, second), part in by_base.groupby(level=[0, 1, 2, 3], sort=False):
        yield str(model), 2, Contrast(str(category), (str(first),), (str(second),)), list(part.to_numpy(dtype=float).T)


def talking_section(data: PanelData, lines: Sequence[Line]) -> Section:
    """The section on talking: a table, two plots, and sentences.

    Args:
        data: The verdicts.
        lines: The result of `talking`.
    """
    made = section(replace(QUESTION, cluster=data.cluster_noun), lines)
    return replace(made, words=[*_debated_words(data), *asked_words(data, lines), *_shown_words(lines, data)])


def debated(verdicts: pd.DataFrame) -> tuple[int, int]:
    """Number of debates on one answer and on two.

    Args:
        verdicts: Verdicts of debates.
    """
    one, two = (int(verdicts.loc[verdicts["phase"] == phase, "unit"].nunique()) for phase in (1, 2))
    return one, two


def _debated_words(data: PanelData) -> Iterator[str]:
    """How many single answers and pairs were debated, of a run that also reads silently."""
    one, two = debated(data.talk)
    if (one or two) and data.silent:
        bases = plural(data.talk["situation"].nunique(), "base")
        yield (
            f"Judges held {plural(one, 'debate')} on single answers and {two:,} on pairs, from {bases}; the other "
            "results are from silent ballots."
        )


def asked_words(data: PanelData, lines: Sequence[Line]) -> Iterator[str]:
    """Sentences on the one tested change, for each model that debated; empty without stages.

    Args:
        data: The verdicts.
        lines: The result of `talking`.
    """
    tested = [line for line in lines if line.about.phase == 1 and not line.secondary]
    for model in data.models if data.staged else ():
        debates = data.talk.loc[(data.talk["model"] == model) & (data.talk["phase"] == 1), "unit"].nunique()
        of_model = [line for line in tested if line.about.model == model and (line.clusters or 0) >= NEEDED]
        of_model = [line for line in of_model if not math.isnan(line.p)]
        line = max(of_model, key=lambda line: (line.shown, abs(line.estimate)), default=None)
        if line is None:
            few = "one debate" if debates == 1 else f"{debates:,} debates"
            if debates:
                yield f"{data.prefix(model)}Talking: {few} cannot show whether it changes the difference."
        elif line.shown:
            yield f"{data.by_itself(model)}On {_debated(line)}, talking changed {_gap(line)}: {_change(line)}."
        else:
            gap = _gap(line) if len(of_model) == 1 else f"any of the {len(of_model)} gaps between labels"
            yield f"{data.prefix(model)}On {_debated(line)}, talking was not shown to change {gap}."


def _debated(line: Line) -> str:
    return f"the {plural(line.clusters or 0, f'debated {line.cluster}')}"


def _gap(line: Line) -> str:
    before, after = signed(line.also["before"]), signed(line.also["after"])
    first, second = contrast_of(line).names
    return f"the gap between '{first}' and '{second}' ({before} before, {after} after)"


def _shown_words(lines: Sequence[Line], data: PanelData) -> Iterator[str]:
    """The largest significant change of each model, phase and step, planned ones first."""
    groups: dict[tuple[str, int, str], list[Line]] = {}
    for line in filter(lambda line: line.shown, lines):
        groups.setdefault((line.about.model, line.about.phase, line.about.step), []).append(line)
    for (model, phase, step), shown in groups.items():
        shown = [line for line in shown if not line.secondary] or shown
        line = max(shown, key=lambda line: abs(line.estimate))
        first, second = contrast_of(line).names
        more = f", the largest of {len(shown)} shown changes" if len(shown) > 1 else ""
        yield (
            f"{data.by_itself(model)}{STEPS[step]} changed the gap between '{first}' and "
            f"'{second}'{' in pairs' if phase == 2 else ''} from {signed(line.also['before'])} to "
            f"{signed(line.also['after'])} (by {signed(line.estimate)}, {signed(line.low)} to {signed(line.high)}, "
            f"over {plural(line.clusters or 0, line.cluster)}; p {p_text(line.p_adjusted)} after Holm's correction"
            f"{more}): {_change(line)}."
        )


def _change(line: Line) -> str:
    """The word for a significant change, from the tested gaps before and after."""
    before, after = (line.also[f"{when}_p_adjusted"] <= ALPHA for when in ("before", "after"))
    higher = contrast_of(line).names[0 if line.estimate > 0 else 1]
    if not before:
        if after:
            return f"a bias in favour of '{higher}' appears, which was not shown before"
        return f"it moves the judges towards '{higher}', though no gap is shown before or after"
    if line.estimate * line.also["before"] > 0:
        return "it amplifies the bias"
    return f"it {'reverses' if after and line.also['after'] * line.also['before'] < 0 else 'reduces'} the bias"
