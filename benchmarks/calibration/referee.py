"""How often the sentence on a referee is right: simulated checks of simulated referees, no model calls.

    python -m benchmarks.calibration.referee --simulations 400

A *valid* referee scores what it is asked, a *halo* one gives the same number whichever question is asked, a *reversed*
one answers the opposite question, a *random* one sees no difference. Both questions share each text's own value, and
every reading has noise, so a valid referee's AUC is about 0.85. The sentence is right if it gives the right reason
for every type.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd

from parley.judging.rldf.check_report import CANNOT_TELL, FOLLOWS_TEXT, REVERSED, check_verdict
from parley.judging.rldf.referee import BIAS

Kind = Literal["valid", "halo", "reversed", "random"]
RIGHT: dict[Kind, str] = {"valid": "", "halo": FOLLOWS_TEXT, "reversed": REVERSED, "random": CANNOT_TELL}
"""Why each kind cannot referee."""
SIGNS: dict[Kind, tuple[int, int]] = {"valid": (1, -1), "halo": (1, 1), "reversed": (-1, 1), "random": (0, 0)}
"""What bias does to the score with the question, and with its reverse."""
TOPICS, WORDINGS, DOSES = 20, 2, 4
STEP, OWN, NOISE = 0.4, 0.3, 0.3
"""Points per dose, and the standard deviations of a text's own value and of a reading."""


def simulated_check(kind: Kind, types: int, rng: np.random.Generator) -> pd.DataFrame:
    """The verdicts of one check.

    Args:
        kind: What the referee is like.
        types: Number of bias types.
        rng: Draws them.
    """
    shape = (types, TOPICS, WORDINGS, DOSES)
    own = rng.normal(0, OWN, (types, TOPICS, 1, DOSES))
    names: dict[str, Any] = {
        "type": [f"type{number}" for number in range(types)],
        "topic": [f"topic{number}" for number in range(TOPICS)],
        "wording": [f"wording{number}" for number in range(WORDINGS)],
        "dose": range(DOSES),
    }
    index = pd.MultiIndex.from_product(names.values(), names=names)
    frames = []
    for part, sign in zip(("score", "reverse"), SIGNS[kind], strict=True):
        # A random referee still has an opinion of each text, which both questions share.
        level = sign * STEP * np.arange(DOSES) + (sign or 1) * own
        values = 5 + level + rng.normal(0, 0.5, (types, TOPICS, 1, 1)) + rng.normal(0, NOISE, shape)
        frames.append(pd.DataFrame({"value": values.ravel()}, index).reset_index().assign(part=part))
    return pd.concat([frame.assign(metric=BIAS, model="sim") for frame in frames], ignore_index=True)


def rates(kind: Kind, types: int, simulations: int, seed: int = 0) -> dict[str, float]:
    """How often the sentence is right about one kind of referee.

    Args:
        kind: What the referee is like.
        types: Number of bias types.
        simulations: Number of simulated checks.
        seed: Seed of the simulation.
    """
    rng = np.random.default_rng([seed, types, *map(ord, kind)])
    right = passed = 0
    aucs: list[float] = []
    for _ in range(simulations):
        verdict = check_verdict(simulated_check(kind, types, rng))
        right += set(verdict.reasons.values()) == {RIGHT[kind]}
        passed += verdict.passed
        aucs += [line.estimate for line in verdict.lines if line.about.columns["part"] == "score"]
    return {"right": right / simulations, "passed": passed / simulations, "auc": float(np.mean(aucs))}


def main() -> None:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(description="How often the sentence on a referee is right.")
    parser.add_argument("--simulations", type=int, default=400, help="simulated checks per row (default: 400)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulation (default: 0)")
    parsed = parser.parse_args()
    print("| referee | bias types | mean AUC | sentence right | called a referee |")
    print("|---|---|---|---|---|")
    for kind, types in product(RIGHT, (1, 5)):
        row = rates(kind, types, parsed.simulations, parsed.seed)
        print(f"| {kind} | {types} | {row['auc']:.2f} | {row['right']:.1%} | {row['passed']:.1%} |", flush=True)


if __name__ == "__main__":
    main()
