"""False alarms and power of the test of a mean difference, on simulated differences of clusters.

    python -m benchmarks.calibration.means                                    # 2,000 studies per cell
    python -m benchmarks.calibration.means --shift 3 --before 544540a5^       # power, beside that of sign flips before

Power is that to find a difference of this many standard errors in its direction.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable
from types import ModuleType

import numpy as np

from parley.analysis.stats.mean_test import mean_p
from parley.analysis.stats.tables import Floats

CLUSTERS = (3, 6, 8, 10, 12, 16, 20, 24, 25, 30, 40, 60, 80)
LEVELS = (0.05, 0.05 / 12)
Draw = Callable[[np.random.Generator, int, float], Floats]


def three_values(rng: np.random.Generator, n: int, shift: float, changed: float) -> Floats:
    """-1, 0 or 1; a share of clusters is not 0."""
    lead = float(np.clip(shift * np.sqrt(changed), -0.9 * changed, 0.9 * changed)) / 2
    return rng.choice([-1.0, 0.0, 1.0], n, p=[changed / 2 - lead, 1 - changed, changed / 2 + lead])


def binary_items(rng: np.random.Generator, n: int, shift: float, items: int) -> Floats:
    """Difference of two shares of right answers, with 8 of 10 right."""
    lead = float(np.clip(shift * np.sqrt(2 * 0.16 / items), -0.35, 0.35)) / 2
    first, second = rng.binomial(items, 0.8 + lead, n), rng.binomial(items, 0.8 - lead, n)
    return (first - second) / items


def one_far(rng: np.random.Generator, n: int, shift: float) -> Floats:
    """One cluster lies at 3 or -3, the others have an SD of 0.3."""
    values = rng.normal(0, 0.3, n)
    values[0] = rng.choice([-3.0, 3.0])
    return values + shift * np.sqrt(0.09 + 9 / n)


def few_fall(rng: np.random.Generator, n: int, shift: float) -> Floats:
    """A tenth of the clusters falls by 2, the others rise as much altogether."""
    return np.where(rng.random(n) < 0.1, -2.0, 2 / 9) + rng.normal(0, 0.3, n) + shift * 0.73


def unequal(rng: np.random.Generator, n: int, shift: float) -> Floats:
    """Means of 1 to 30 scenarios."""
    return shift * 0.5 + rng.normal(0, np.sqrt(0.09 + 1 / rng.integers(1, 31, n)))


def unequal_spread(rng: np.random.Generator, n: int, shift: float, share: float, times: float) -> Floats:
    """A share of the clusters varies several times as much as the others."""
    spread = np.where(rng.random(n) < share, times, 1.0)
    return rng.normal(0, spread) + shift * np.sqrt(1 + share * (times**2 - 1))


def both_tails(rng: np.random.Generator, n: int, shift: float) -> Floats:
    """One in twenty clusters gains a point, one in twenty loses one."""
    moved = rng.choice([-1.0, 0.0, 1.0], n, p=[0.05, 0.9, 0.05])
    return moved + rng.normal(0, 0.1, n) + shift * 0.332


def mostly_zero(rng: np.random.Generator, n: int, shift: float, zeros: float) -> Floats:
    """A share of exact zeros, beside skewed differences of mean 0."""
    skewed = rng.lognormal(0, 1, n) - np.exp(0.5) + shift * 2.16 / np.sqrt(1 - zeros)
    return np.where(rng.random(n) < zeros, 0.0, skewed)


DATA: dict[str, Draw] = {
    "normal": lambda rng, n, shift: rng.normal(shift, 1, n),
    "normal, rounded": lambda rng, n, shift: np.rint(rng.normal(shift, 1, n)),
    "1 or -1": lambda rng, n, shift: three_values(rng, n, shift, 1.0),
    "1, 0 or -1": lambda rng, n, shift: three_values(rng, n, shift, 2 / 3),
    "the same, nine of ten 0": lambda rng, n, shift: three_values(rng, n, shift, 0.1),
    "one binary item": lambda rng, n, shift: binary_items(rng, n, shift, 1),
    "five binary items": lambda rng, n, shift: binary_items(rng, n, shift, 5),
    "t with 3 degrees of freedom": lambda rng, n, shift: rng.standard_t(3, n) + shift * np.sqrt(3),
    "lognormal": lambda rng, n, shift: rng.lognormal(0, 1, n) - np.exp(0.5) + shift * 2.16,
    "lognormal, σ ½": lambda rng, n, shift: rng.lognormal(0, 0.5, n) - np.exp(0.125) + shift * 0.604,
    "means of 1 to 30 scenarios": unequal,
    "one cluster at ±3": one_far,
    "a tenth falls by 2": few_fall,
    "a tenth eight times as variable": lambda rng, n, shift: unequal_spread(rng, n, shift, 0.1, 8),
    "a twentieth ten times as variable": lambda rng, n, shift: unequal_spread(rng, n, shift, 0.05, 10),
    "a twentieth at 1, a twentieth at -1": both_tails,
    "half 0, else skewed": lambda rng, n, shift: mostly_zero(rng, n, shift, 0.5),
    "four fifths 0, else skewed": lambda rng, n, shift: mostly_zero(rng, n, shift, 0.8),
    "t with 2.2 degrees of freedom": lambda rng, n, shift: rng.standard_t(2.2, n) + shift * 3,
    "gamma, shape ½": lambda rng, n, shift: rng.gamma(0.5, 1, n) - 0.5 + shift * 0.707,
    "a fifth five times as variable": lambda rng, n, shift: unequal_spread(rng, n, shift, 0.2, 5),
    "Laplace": lambda rng, n, shift: rng.laplace(0, 1, n) + shift * np.sqrt(2),
    "Pareto, α 3": lambda rng, n, shift: rng.pareto(3, n) - 0.5 + shift * 0.866,
    "lognormal, in whole points": lambda rng, n, shift: np.rint(2 * rng.lognormal(0, 1, n)) - 3.296 + shift * 4.33,
    "two humps": lambda rng, n, shift: rng.choice([-0.5, 0.5], n) + rng.normal(0, 0.2, n) + shift * 0.539,
    "half 0, else t(3)": lambda rng, n, shift: np.where(
        rng.random(n) < 0.5, 0.0, rng.standard_t(3, n) + shift * np.sqrt(6)
    ),
    "a twentieth falls by 1": lambda rng, n, shift: (
        np.where(rng.random(n) < 0.05, -1.0, 1 / 19) + rng.normal(0, 0.1, n) + shift * 0.25
    ),
    "two groups, each lognormal": lambda rng, n, shift: (
        (rng.lognormal(0, 1, n) - np.exp(0.5)) * rng.choice([-1, 1, 1], n) + shift * 2.16
    ),
}


def sign_flips(commit: str) -> ModuleType:
    """The sign-flip test of a commit that had a module for it; patterns of up to 24 clusters are counted."""
    name = "analysis/stats/signflips.py"
    text = subprocess.run(["git", "show", f"{commit}:{name}"], capture_output=True, text=True, check=True).stdout
    module = ModuleType(name)
    exec(text.replace("MAX_COUNTED = 36", "MAX_COUNTED = 24"), module.__dict__)
    return module


def rates(draw: Draw, n: int, shift: float, studies: int, seed: int, test: Callable[[Floats], float]) -> Floats:
    """The share of studies with p at most each level, and the mean in the shift's direction."""
    rng = np.random.default_rng([seed, n])
    found = np.zeros(len(LEVELS))
    for _ in range(studies):
        values = draw(rng, n, shift / np.sqrt(n))
        found += (test(values) <= np.array(LEVELS) + 1e-12) & (not shift or values.mean() * shift > 0)
    return found / studies


def main() -> None:
    parser = argparse.ArgumentParser(description="False alarms and power of the test of a mean difference.")
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shift", type=float, default=0.0, help="true difference in standard errors (default: 0)")
    parser.add_argument("--clusters", type=int, nargs="+", default=CLUSTERS, help="how many clusters the studies have")
    parser.add_argument("--only", default="", metavar="TEXT", help="data with this in their name")
    parser.add_argument("--before", default="", metavar="COMMIT", help="beside the sign flips of this commit")
    options = parser.parse_args()
    tests = [*([sign_flips(options.before).sign_flip_p] if options.before else []), mean_p]
    print(f"| {options.studies} studies, difference of {options.shift:+g} | {' | '.join(map(str, options.clusters))} |")
    print(f"|---|{'---|' * len(options.clusters)}")
    for name, draw in ((name, draw) for name, draw in DATA.items() if options.only in name):
        cells = [
            [rates(draw, n, options.shift, options.studies, options.seed, test) for test in tests]
            for n in options.clusters
        ]
        for place, level in enumerate(LEVELS):
            shown = (" → ".join(f"{100 * rate[place]:.1f}" for rate in of_size) for of_size in cells)
            print(f"| {name}, p ≤ {level:.2g} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
