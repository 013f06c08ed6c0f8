"""Replies that are unread because of their content, judges who lean to opposite sides, and models beside each other.

Every trial reads the report as its reader does: its headline, its sentences, the verdicts in its tables.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd

from parley.analysis.page.report import Report, ReportContext
from parley.analysis.stats.results import DIFFERENT, SMALL
from parley.judging.bbq import report as bbq
from parley.judging.malibu.report import report as malibu
from parley.judging.squad import report as squad
from tests.true_sentences import cells, verdicts
from tests.true_sentences.levels_report import ballots

FEW_DRAWS = ReportContext(draws=20)


def aloud(rng: np.random.Generator, bases: int, scenarios: int, added: float = 0.0) -> pd.DataFrame:
    """Whole scores that two judges say aloud; `added` is what 'female' gets."""
    shape = (bases, scenarios, 2, 2)
    quality = rng.normal(6, 1, shape[:2])[..., None, None] + rng.normal(0, 0.2, (bases, 1, 2, 1))
    values = (quality + np.array([added, 0.0])[:, None] + rng.normal(0, 1, shape)).round().clip(0, 10)
    base, scenario, label, judge = (places.ravel().astype(str) for places in np.indices(shape))
    identity, scenario = np.where(label == "0", "female", "male"), pd.Series(base) + "-" + scenario
    frame = pd.DataFrame({"base": base, "scenario": scenario, "identity": identity, "judge": judge})
    frame = frame.assign(value=values.ravel(), category="gender", unit=frame["scenario"] + frame["identity"])
    return verdicts(frame, judge_model="m")


def unread(frame: pd.DataFrame, rows: np.ndarray) -> pd.DataFrame:
    """The replies in which these were refused."""
    return frame.assign(value=frame["value"].mask(rows), status=np.where(rows, "refused", "ok"))


def says_yes(report: Report) -> bool:
    assert report.headline
    return report.headline.verdict in (DIFFERENT, SMALL)


def _ends_refused(rng: np.random.Generator, share: float, bases: int = 20, scenarios: int = 5) -> bool:
    """Whether labels "move the scores" where the lowest of one label and the highest of the other are refused."""
    frame = aloud(rng, bases, scenarios)
    tied = frame["value"] + rng.uniform(0, 0.1, len(frame))  # which of equal scores is refused is chance
    rank = tied.groupby(frame["identity"]).rank(pct=True)
    female = frame["identity"] == "female"
    return says_yes(malibu(unread(frame, ((rank <= share) & female | (rank > 1 - share) & ~female).to_numpy())))


def _missed(rng: np.random.Generator, added: float) -> bool:
    """Whether a difference is not named where one reply in a hundred is refused, by chance."""
    frame = aloud(rng, 40, 5, added)
    return not says_yes(malibu(unread(frame, rng.random(len(frame)) < 0.01)))


def _paragraphs(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Whether each of two equal arms answers eight questions on each of 40 paragraphs right, and the clusters."""
    level = rng.beta(2, 2, 40)[:, None, None]
    return rng.random((40, 8, 2)) < level, np.arange(40)


def _lost(rng: np.random.Generator, right: np.ndarray, share: float) -> np.ndarray:
    """The second arm leaves a share of its wrong answers unread."""
    lost = ~right & (rng.random(right.shape) < share)
    lost[..., 0] = False
    return lost


def _search(rng: np.random.Generator, share: float) -> bool:
    """Whether search "changes the score" although both arms know the same."""
    right, _ = _paragraphs(rng)
    lost, rows = _lost(rng, right, share), []
    for paragraph, question, arm in np.ndindex(right.shape):
        read = not lost[paragraph, question, arm]
        rows.append(
            {"unit": f"{paragraph}/{question}/{arm}", "question_id": f"{paragraph}/{question}", "repeat": 0,
             "paragraph": f"p{paragraph}", "paragraph_shown": 1, "model": "m", "search": ("none", "web")[arm],
             "metric": "answer", "value": 1.0 if read else math.nan, "answerable": True, "answers": json.dumps(["yes"]),
             "text": ("no", "yes")[int(right[paragraph, question, arm])] if read else None,
             "status": "ok" if read else "unparsed"}
        )  # fmt: skip
    report = squad.report(pd.DataFrame(rows), FEW_DRAWS)
    return _claimed(report, "between_arms")


def _claimed(report: Report, table: str) -> bool:
    """Whether a plot of this table has a line that is called different."""
    lines = [line for forest in report.forests if forest.table == table for line in forest.lines]
    return any(line.verdict in (DIFFERENT, SMALL) for line in lines)


def _method(rng: np.random.Generator, share: float) -> bool:
    """Whether a method of BBQ "changes the accuracy" although it knows no more than the other."""
    right, _ = _paragraphs(rng)
    lost, rows = _lost(rng, right, share), []
    for template, number, arm in np.ndindex(right.shape):
        known, label = bool(right[template, number, arm]), number % 2
        rows.append(
            {"unit": f"{template}/{number}/{arm}", "metric": "answer", "category": "Age", "repeat": 0, "names": False,
             "example_id": 8 * template + number, "condition": "disambig", "label": label, "target": number // 2 % 2,
             "unknown": 2, "scenario": f"{template}/{number // 2}", "question": template, "model": "m",
             "method": ("default", "cot")[arm], "round": 1, "text": None,
             "value": math.nan if lost[template, number, arm] else float(label if known else 1 - label),
             "status": "unparsed" if lost[template, number, arm] else "ok"}
        )  # fmt: skip
    return _claimed(bbq.report(pd.DataFrame(rows), FEW_DRAWS), "accuracy_against_default")


def _opposite(rng: np.random.Generator, pairs: bool) -> bool:
    """Whether nothing is said of a panel of the paper's design whose judges add −1.05 and +1.06 to a label."""
    frame = aloud(rng, 40, 2)
    leans = np.where(frame["judge"] == "0", -1.05, 1.06) * (frame["identity"] == "female")
    value = 5 + (frame["value"] - 6) * 0.3 + leans
    labels = (
        {"female": "up", "male": "down"} if pairs else {}
    )  # labels of one's own are pairs without a primary contrast
    frame = frame.assign(value=value, identity=frame["identity"].replace(labels), judge_model="m" + frame["judge"])
    return not any("differ on" in text for text in malibu(frame).words)


def _contradicts(rng: np.random.Generator, models: int) -> bool:
    """Whether "Labels move the scores" of a model stands below a headline that names nothing."""
    frames = [
        ballots(rng, bases=20).assign(
            model=f"m{number}", judge_model=f"m{number}", unit=lambda made, n=number: f"{n}/" + made["unit"]
        )
        for number in range(models)
    ]
    report = malibu(pd.concat(frames, ignore_index=True))
    moved = [text for text in report.words if "Labels move the scores" in text and "by itself" not in text]
    return bool(moved) and not says_yes(report)


CELLS = [
    *cells(
        "labels move the scores",
        "scores aloud do not depend on labels; the lowest {share:.0%} of one and the highest of the other are refused",
        _ends_refused,
        {"share": 0.02},
        {"share": 0.04, "before": "28%"},
        {"share": 0.08, "before": "80%"},
    ),
    *cells(
        "that a label gets half a point more is missed",
        "scores aloud, 1% refused by chance, 40 bases of five scenarios",
        _missed,
        {"added": 0.5},
        limit=0.2,
    ),
    *cells(
        "search changes the score",
        "it does not, {share:.0%} of one arm's wrong answers are unread, 40 paragraphs of eight questions",
        _search,
        {"share": 0.4, "before": "53%"},
        {"share": 0.1},
    ),
    *cells(
        "a method of BBQ changes the accuracy",
        "it does not, {share:.0%} of its wrong answers are unread, 40 templates of eight rows",
        _method,
        {"share": 0.4, "before": "53%"},
        {"share": 0.1},
    ),
    *cells(
        "that judges lean to opposite sides is not said",
        "one adds −1.05 to a label, one +1.06, the paper's design, 40 bases, {words}",
        _opposite,
        {"pairs": False, "words": "gender"},
        {"pairs": True, "words": "labels of one's own"},
        limit=0.0,
        before="100%",
    ),
    *cells(
        "“Labels move the scores” of a model, below a headline that names none",
        "labels change nothing, {models} models, 20 bases",
        _contradicts,
        {"models": 3, "before": "15%"},
        {"models": 6, "before": "25%"},
        limit=0.0,
    ),
]
