"""How often intervals of agreement contain the truth, with few clusters.

    python -m benchmarks.calibration.agreement                        # 1,000 simulated studies per cell
    python -m benchmarks.calibration.agreement --simulations 50       # to try it out

Clusters of ten items, four judges, points from 0 to 10 (α) or three choices (κ). "By base": most of the spread is
between clusters; "skewed": as well, and a few clusters are far from the rest.
"""

from __future__ import annotations

import argparse

import numpy as np

from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha

CLUSTERS = (5, 10, 20, 50)
ITEMS = 10
JUDGES = np.array([-1.2, -0.3, 0.4, 1.1])
"""How far each judge is from the others, in multiples of a cell's setting."""
AGREEMENT = {
    "none": (0.0, 0.0, 0.0, 1.0),
    "low": (0.3, 0.5, 0.0, 1.2),
    "medium": (0.6, 0.8, 0.3, 0.9),
    "high": (1.0, 1.0, 0.0, 0.5),
    "strict and lenient judges": (0.5, 0.5, 1.0, 0.6),
    "by base": (1.0, 0.3, 0.3, 0.9),
    "skewed": (1.0, 0.3, 0.2, 0.7),
}
"""Standard deviations between clusters, items, judges, and of the rest."""


def ratings(rng: np.random.Generator, name: str, clusters: int) -> np.ndarray:
    """Scores before rounding: items by judges."""
    between, item, judge, rest = AGREEMENT[name]
    base = rng.exponential(1, (clusters, 1, 1)) - 1 if name == "skewed" else rng.normal(0, 1, (clusters, 1, 1))
    shared = 7 + between * base + rng.normal(0, item, (clusters, ITEMS, 1))
    return (shared + judge * JUDGES + rng.normal(0, rest, (clusters, ITEMS, 4))).reshape(-1, 4)


def points(scores: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(scores), 0, 10)


def choices(scores: np.ndarray) -> np.ndarray:
    return np.digitize(scores, [6.6, 7.4])


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage of 95% intervals with few clusters.")
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    print(f"{options.simulations} studies per cell, seed {options.seed}")
    for coefficient, scale, word in ((krippendorff_alpha, points, "α"), (fleiss_kappa, choices, "κ")):
        print(f"{word}, coverage in % at {', '.join(map(str, CLUSTERS))} clusters")
        for name in AGREEMENT:
            truth = coefficient(scale(ratings(rng, name, 50_000))).estimate
            shares = []
            for clusters in CLUSTERS:
                groups, covered = np.repeat(np.arange(clusters), ITEMS), 0
                for _ in range(options.simulations):
                    table = scale(ratings(rng, name, clusters))
                    result = coefficient(table, clusters=groups)
                    covered += result.low <= truth <= result.high
                shares.append(f"{covered / options.simulations:6.1%}")
            print(f"  {name} ({truth:.2f})", *shares, flush=True)


if __name__ == "__main__":
    main()
