"""What unread replies could change: the bounds of a contrast, and what is said where they include 0."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from parley.analysis.effects import Question, answer
from parley.analysis.page.report import Report, answered
from parley.analysis.stats.results import Line
from parley.judging.bbq.comparisons import changes
from parley.judging.bbq.leaderboard import answers
from parley.judging.rubric import report as rubric
from tests.analysis.verdicts import bbq_answer

HELP = Question(
    name="help",
    ask="Does help change the score?",
    measures={"score": "score"},
    arms="arm",
    item=("item",),
    cluster="text",
    limits=(0.0, 10.0),
)


def frame(help: list[float], none: list[float]) -> pd.DataFrame:
    """Scores of one item in each of some texts, with help and without."""
    return pd.DataFrame(
        {"model": "m", "arm": arm, "item": item, "text": f"t{item}", "score": score}
        for arm, scores in (("none", none), ("help", help))
        for item, score in enumerate(scores)
    )


def line(help: list[float], none: list[float]) -> Line:
    (only,) = answer(HELP, frame(help, none))
    return only


def test_unread_replies_of_one_arm_stand_at_one_end_of_the_scale_and_those_of_the_other_at_the_other() -> None:
    # Read in both: 8 - 6 in two texts. The third text is between 0 - 4 and 10 - 4, the fourth between 7 - 10 and 7 - 0.
    found = line([8, 8, math.nan, 7], [6, 6, 4, math.nan])
    bounds = [found.also[name] for name in ("first_read", "second_read", "worst_low", "worst_high")]
    assert (found.estimate, bounds) == (2, [3 / 4, 3 / 4, (2 + 2 - 4 - 3) / 4, (2 + 2 + 6 + 7) / 4])
    assert "worst_low" not in line([8, 8], [6, 6]).also, "all was read"
    assert "worst_low" not in line([math.nan, math.nan], [math.nan, math.nan]).also, "nothing was read"


def test_a_difference_among_the_replies_that_were_read_is_no_yes() -> None:
    lost = [8.0] * 20 + [math.nan] * 20, [6.0] * 40
    found = line(*lost)
    assert (found.shown, found.verdict) == (True, "undecided (unread)")
    assert found.note.endswith("different among the replies that were read (50% and 100%; bounds -2.00 to +3.00)")
    made = answered(HELP, frame(*lost))
    headline = Report("", forests=tuple(made.forests)).headline
    assert headline
    assert (headline.verdict, headline.shown) == ("undecided (unread)", 0)
    assert headline.answer.startswith("Undecided (unread): help − none: +2.00")
    (sentence,) = made.words
    assert "(50% and 100%; bounds -2.00 to +3.00)." in sentence
    assert "worst_low, worst_high" in made.tables[0].note
    some = line([8.0] * 36 + [math.nan] * 4, [6.0] * 40)
    assert (some.also["worst_low"], some.also["worst_p"] > 0.05, some.verdict) == (1.2, True, "undecided (unread)")
    assert line([8.0] * 39 + [math.nan], [6.0] * 40).verdict == "different", "the worst is 1.8, and significant"


def test_a_mean_below_the_margin_must_lie_there_at_both_bounds() -> None:
    near = np.tile([0.01, -0.01], 20)
    question = replace(HELP, margin=1.0)
    for lost, verdict in ((1, "below the margin on average"), (9, "undecided (unread)")):
        help = [math.nan] * lost + list(5 + near[lost:])
        (only,) = answer(question, frame(help, [5.0] * 40))
        assert only.verdict == verdict, only.note


def test_the_bias_of_unread_answers_is_bounded_by_whom_they_could_have_named() -> None:
    # The target is 0, 0, 1, 1 in turn; disambiguated rows are the odd ones. cot names targets; one reply is unread.
    rows = [
        bbq_answer(number, value, method=method, unit=f"{number}/{method}")
        for number in range(1, 16, 2)
        for method, value in (("default", 0.0), ("cot", 0.0 if number % 4 < 2 else 1.0))
    ]
    rows[-1]["value"] = None
    (bias,) = (
        line
        for question, answered in changes(answers(pd.DataFrame(rows)), draws=20)
        for line in answer(question, answered)
        if line.measure == "bias"
    )
    # Bias of default: 4 of 8 targets, 0; of cot: 7 or 8 of 8 targets, 75 or 100.
    assert (bias.n, bias.also["first_read"], bias.also["second_read"]) == (7, 7 / 8, 1)
    assert (bias.also["worst_low"], bias.also["worst_high"]) == pytest.approx((75, 100))


def test_a_topic_of_which_some_scores_were_read_is_bounded_by_the_others() -> None:
    """Two texts a topic and group: one of the four scores of the first topic's 'new' texts is unread."""
    rows = [
        {"item": f"{group}{topic}{text}", "group": group, "model": "m", "judge": judge, "metric": "CE", "status": "ok"}
        | {"topic": f"t{topic}", "value": 8.0 if group == "new" else 6.0}
        for group, topic, text, judge in product(("old", "new"), range(8), range(2), ("A", "B"))
    ]
    next(row for row in rows if row["group"] == "new")["value"] = math.nan
    (forest,) = (plot for plot in rubric.report(pd.DataFrame(rows)).forests if plot.table == "groups")
    (found,) = forest.lines
    bounds = [found.also[name] for name in ("first_read", "second_read", "worst_low", "worst_high")]
    # 20 points in each topic; in one of eight a quarter of the mean of 80 is between 0 and 100.
    assert (found.estimate, bounds) == (20, [7 / 8, 1, 20 - 80 / 4 / 8, 20 + 20 / 4 / 8])
    assert found.verdict == "different"
