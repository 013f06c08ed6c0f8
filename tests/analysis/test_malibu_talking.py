"""What talking does, by hand: the change of a gap, and the sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parley.analysis.page.report import ReportContext
from parley.analysis.stats.mean_test import mean_test
from parley.analysis.stats.results import Line
from parley.judging.malibu import report as malibu
from parley.judging.malibu.panel_data import PanelData
from parley.judging.malibu.talking import (
    HEARING,
    REASONS,
    asked_words,
    before_and_after,
    heard_each_other,
    talking,
)
from parley.runs import frames
from parley.runs.example import example_runs
from tests.analysis.silent import primary, silent_ballots
from tests.analysis.verdicts import single

BASES = range(6)
"""The fewest with which a test can be significant: 2/2⁶ = 0.03."""
LABELS = ("female", "male")


def verdict(base: int, identity: str, round: int, value: float | None, **others: Any) -> dict[str, Any]:
    place = {"unit": f"{base}/{identity}", "base": f"b{base}", "round": round, "status": "ok"}
    return single(f"s{base}", identity, value, **place | others)


def scored(before: tuple[float, float], after: tuple[float, float]) -> pd.DataFrame:
    """Six bases, each with these scores of female and male; a tenth of a point apart, so that signs can be flipped."""
    rows = [
        verdict(base, identity, round, scores[place] + (base / 10 if identity == "female" else 0))
        for base in BASES
        for round, scores in ((1, before), (2, after))
        for place, identity in enumerate(LABELS)
    ]
    return pd.DataFrame(rows)


def change(frame: pd.DataFrame) -> Line:
    """The change of the only pair."""
    (line,) = talking(PanelData(frame))
    return line


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((4.0, 5.0), (3.0, 6.0), "it amplifies the bias."),
        ((6.0, 5.0), (8.0, 5.0), "it amplifies the bias."),
        ((3.0, 6.0), (4.0, 5.0), "it reduces the bias."),
        ((3.0, 6.0), (7.0, 5.0), "it reverses the bias."),
        ((4.75, 5.0), (7.0, 5.0), "a bias in favour of 'female' appears, which was not shown before."),
        ((4.0, 5.0), (4.0, 5.0), ""),
    ],
)
def test_a_change_is_the_last_gap_minus_the_first_and_named_after_the_first(
    before: tuple[float, float], after: tuple[float, float], words: str
) -> None:
    frame = scored(before, after)
    line, moved = change(frame), (after[0] - after[1]) - (before[0] - before[1])
    assert line.also["before"] == pytest.approx(before[0] - before[1] + 0.25)
    assert line.also["after"] == pytest.approx(after[0] - after[1] + 0.25)
    unseen = 1 - 0.025 ** (1 / 6)  # the share of bases that six may have missed, which may change by ten points
    ends = moved - unseen * (moved + 10), moved + unseen * (10 - moved)
    low, high = (max(ends[0], 0) if moved > 0 else ends[0], min(ends[1], 0) if moved < 0 else ends[1])
    assert (line.estimate, line.low, line.high) == pytest.approx((moved, low, high), abs=1e-6)
    assert line.p == pytest.approx(2 / 2**6 if moved else 1)
    said = " ".join(
        sentence for sentence in malibu.report(frame, ReportContext(draws=20)).words if "alking" in sentence
    )
    assert said.partition("): ")[2] == words
    assert line.verdict == ("different" if words else "undecided")


def talk(reasons: float = 0.0, hearing: float = 0.0, *, other: float = 0.0) -> pd.DataFrame:
    """Talking units of three rounds: silent ballots, and scores with noise to which each step adds points for women.

    A third are control debates of earlier versions: `other` is what hearing ballots on the other label adds there.
    """
    rng = np.random.default_rng(0)
    silent = silent_ballots(categories=["gender"], judges={"Ada": {}, "Ben": {}}, stage="talk", readout="sampled")
    silent["unit"] = "t" + silent["unit"]
    units = silent["unit"].drop_duplicates()
    hears_other = silent["unit"].map(pd.Series(rng.random(len(units)) < 1 / 3, index=units.to_numpy())).to_numpy()
    turned = silent["identity"].map({"female": "male", "male": "female"})
    silent["heard"] = np.where(hears_other, turned, silent["identity"])
    women = (silent["identity"] == "female").to_numpy()
    noise = 0.1 * rng.normal(size=(2, len(silent)))
    blind = silent["value"] + reasons * women + noise[0]
    last = blind + np.where(hears_other, other, hearing) * women + noise[1]
    rounds = [silent, silent.assign(round=1, value=blind), silent.assign(round=2, value=last)]
    return pd.concat(rounds, ignore_index=True)


def test_each_step_is_taken_within_judge_and_unit() -> None:
    frame = talk(reasons=0.5, hearing=1.0, other=1.0)
    lines = {line.about.step: line for line in talking(PanelData(frame))}
    own = frame[frame["heard"] == frame["identity"]]
    for step, (before, after), part in ((REASONS, (0, 1), frame), (HEARING, (1, 2), own)):
        wide = part.pivot_table(index=["base", "scenario", "judge"], columns=["round", "identity"], values="value")
        gaps = {number: wide[number]["female"] - wide[number]["male"] for number in (0, 1, 2)}
        expected = mean_test((gaps[after] - gaps[before]).groupby("base").mean().to_numpy())
        found = (lines[step].estimate, lines[step].low, lines[step].high)
        assert found == pytest.approx((expected.estimate, expected.low, expected.high))
        assert lines[step].also["before"] == pytest.approx(gaps[before].groupby("base").mean().mean())
    (row,) = primary(frame, margin=0.1).itertuples()
    assert row.estimate == pytest.approx(0.5, abs=0.1), "the blind ballot: neither 0 (silent) nor 1.5 (last round)"


def test_the_contrast_that_silent_ballots_show_most_is_the_one_test() -> None:
    debated = [f"b{base}" for base in range(10)]
    silent = silent_ballots(gaps={"female": 0.1, "white": -0.5})
    aloud = silent_ballots(stage="talk", gaps={"white": -0.5}, judges={"Ada": {}, "Ben": {}})
    aloud = aloud[aloud["base"].isin(debated)]
    aloud = aloud.assign(unit="t" + aloud["unit"], heard=aloud["identity"])
    rounds = [aloud.assign(round=n, value=aloud["value"] - (n == 2) * (aloud["identity"] == "white")) for n in range(3)]
    data = PanelData(pd.concat([silent.assign(heard=""), *rounds], ignore_index=True))
    lines = talking(data)
    (asked,) = [line for line in lines if not line.secondary]
    assert (asked.about.category, asked.about.step, asked.tests) == ("race", HEARING, 1)
    assert (asked.estimate, asked.shown) == (pytest.approx(1.0), True)
    few, said = (list(asked_words(data, [replace(asked, clusters=bases)])) for bases in (5, 6))
    assert few == ["Talking: 200 debates cannot show whether it changes the difference."]
    assert said[0].endswith("'black, asian, hispanic' and 'white' (+0.48 before, +1.48 after): it amplifies the bias.")


def test_control_debates_of_earlier_runs_are_left_out_of_what_hearing_adds() -> None:
    """In 51 of the shipped run's 160 debates the judges heard ballots on another label. The numbers are those of the
    last version that held such debates."""
    verdicts = frames.verdicts(example_runs()["talking"])
    assert (~heard_each_other(verdicts.drop_duplicates("unit"))).sum() == 51
    data = PanelData(verdicts)
    lines = [line for line in talking(data) if line.about.step == HEARING and len(line.about.contrast.second) == 1]
    race, religion = (line for line in lines if len(line.about.contrast.first) == 3)
    assert (race.estimate, race.low, race.high) == pytest.approx((-0.4208333, -1.7143936, 0.8727269))
    assert (religion.estimate, religion.low, religion.high) == pytest.approx((-0.2731481, -1.1042219, 0.5555112))
    assert (race.clusters, religion.clusters) == (10, 12)
    assert len(before_and_after(data.debates)) == 416
    with_controls = talking(PanelData(verdicts.drop(columns="heard")))
    assert religion.estimate not in [line.estimate for line in with_controls], "the other label's ballots would count"
