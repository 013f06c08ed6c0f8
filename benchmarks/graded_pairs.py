"""How much preference goes with a tenth of a point? Graded answers without labels, scored singly and compared in pairs.

    python -m benchmarks.graded_pairs hf/qwen2.5-coder-1.5b --bases 43 --out pairs.csv

It checks `plan.PREFERENCE_MARGIN`, the margin of preferences, against what 0.1 points of score are worth to the same
judge where no label is shown. Every flawed or padded answer is compared with the good one in both orders. The slope
is that of the share preferred (first minus second) on the difference in score, through 0, over all texts; its standard
error is from leaving out one base at a time.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import numpy as np
import pandas as pd

from parley.agents import Models, seed_from
from parley.agents.models.session import Session, session
from parley.judging.ballots import cast_ballots
from parley.judging.malibu.plan import GRADED, MARGIN, MalibuCell
from parley.judging.malibu.silent import GOOD, BallotSettings, GradedOrder, SilentBallots, yardstick
from parley.scenarios import load_suite, select
from parley.scenarios.ballot_wordings import ENGLISH, load_ballot_wordings


async def read(ballots: SilentBallots, order: GradedOrder, texts: list[str], model: str, models: Models) -> float:
    """The score of one answer, or the probability of preferring the first of two; NaN where it was not read."""
    base = order.scenario.base
    phase = GRADED if len(texts) == 1 else 2
    cell = MalibuCell(
        phase=phase,
        base=base,
        scenario=order.scenario.id,
        question=ballots.question(base).id,
        model=model,
        repeat=0,
    )
    asked = ballots.ballots(cell, texts, order.scenario.text)
    with session(Session(str(seed_from(base, *texts)))):
        outcome = await cast_ballots([ballots.judge], asked, model, models, options={"max_tokens": 1})
    value = outcome.verdicts[0].value
    return float("nan") if value is None else value


async def compare(model: str, bases: int, out: Path | None) -> pd.DataFrame:
    """One row per flawed or padded answer: how far it is below the good one, and how much less it is preferred."""
    suite = load_suite("wide")[0]
    ballots = SilentBallots(
        load_ballot_wordings(ENGLISH), BallotSettings(), identities=select(["gender"]), scenarios=suite.scenario
    )
    orders = yardstick(suite, "full", bases=bases, preferred=()).orders
    models, rows = Models(), []
    await models[model].prepare()
    for base, order in orders.items():
        good = order.texts[GOOD]
        of_good = await read(ballots, order, [good], model, models)
        for (flaw, dose), text in order.texts.items():
            if (flaw, dose) != GOOD:
                points = of_good - await read(ballots, order, [text], model, models)
                first = await read(ballots, order, [good, text], model, models)
                second = await read(ballots, order, [text, good], model, models)
                rows.append({"base": base, "flaw": flaw, "dose": dose, "points": points, "share": first - second})
        if out:
            pd.DataFrame(rows).to_csv(out, index=False)
    return pd.DataFrame(rows)


def slope(rows: pd.DataFrame) -> tuple[float, float]:
    """The share preferred that goes with a point, and its standard error over bases."""
    by_base = rows.assign(xy=rows["points"] * rows["share"], xx=rows["points"] ** 2).groupby("base")[["xy", "xx"]].sum()
    whole = by_base.sum()
    without = ((whole["xy"] - by_base["xy"]) / (whole["xx"] - by_base["xx"])).to_numpy()
    count = len(without)
    return float(whole["xy"] / whole["xx"]), float(
        np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum())
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a judge that gives log-probabilities")
    parser.add_argument("--bases", type=int, default=43, help="bases with graded answers (default: all 43)")
    parser.add_argument("--out", type=Path, help="a CSV file of all differences")
    given = parser.parse_args()
    rows = asyncio.run(compare(given.model, given.bases, given.out)).dropna()
    print(rows.groupby(["flaw", "dose"])[["points", "share"]].mean().round(3).to_string())
    point, error = slope(rows)
    print(
        f"a point goes with {point:.3f} of preference (standard error {error:.3f}, {rows['base'].nunique()} bases, "
        f"{len(rows)} pairs): {MARGIN:g} points with {MARGIN * point:.4f}"
    )


if __name__ == "__main__":
    main()
