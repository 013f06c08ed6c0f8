"""The suite `quick`, which the first command runs: 40 ballots with the label last, a few readings, one debate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from parley.judging.malibu.config import MalibuConfig
from parley.judging.malibu.study import Malibu

QUICK = Malibu(MalibuConfig(suite="quick"))


def test_twenty_bases_two_labels_a_few_readings_and_one_debate() -> None:
    units = list(QUICK.plan())
    kinds = Counter((unit.facets["stage"], unit.facets["phase"]) for unit in units)
    assert kinds == {("silent", 1): 40, ("silent", 3): 3, ("talk", 1): 1}
    ballots = [unit for unit in units if (unit.facets["stage"], unit.facets["phase"]) == ("silent", 1)]
    wordings = {unit.facets["base"]: unit.facets["wording"] for unit in ballots}
    assert len(wordings) == len(set(wordings.values())) == 20, "each base has a wording of its own"
    assert [unit.facets["identity"] for unit in ballots] == ["asian", "hispanic"] * 20, "both labels of a text in a row"
    assert [QUICK.reads_aloud(unit) for unit in units] == [False] * 43 + [True]
    assert units[-1].facets["heard"] == units[-1].facets["identity"], "nothing is compared with a single debate"


def test_the_label_stands_behind_situation_and_answer() -> None:
    ballots = [unit for unit in QUICK.plan() if unit.id.startswith("s1/")]
    for first, second in zip(ballots[::2], ballots[1::2], strict=True):
        texts, _ = QUICK.design._texts(first)
        beginnings = [QUICK.task(unit).partition(texts[0])[0] for unit in (first, second)]
        assert beginnings[0] == beginnings[1] != "", "nothing before the answer's end tells whose it is"


def test_the_one_debate_is_heard_while_it_is_held(parley: Callable[..., Any]) -> None:
    command = ("run", "malibu", "--suite", "quick", "--limit", "2", "--yardstick", "off", "--model", "sim/judge")
    told = parley(*command, "--out", "a.sqlite").err
    assert [told.count(f"round {number}: “") for number in (1, 2)] == [4, 4]
    assert "round 1" not in parley(*command, "--out", "b.sqlite", "-q").err
    assert "round 1" not in parley(*command, "--out", "c.sqlite", "--debates", "2").err, "too much to read"
