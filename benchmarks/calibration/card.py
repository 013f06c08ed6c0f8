"""Simulated judges for the card: how often a line is *shown* without an effect, and how often its interval holds.

The judges are drawn from the battery's description, not through its code: scores and log-odds of a few texts per base,
with noise that belongs to the base, and one planted property per line. No model reads anything.

    python -m benchmarks.calibration.card --simulations 2000        # the table of benchmarks/CARD.md
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from parley.analysis.card.lines import line_test
from parley.analysis.card.samples import Sample, every_pair
from parley.analysis.known_order import FLAWS
from parley.analysis.malibu.aligned import REFERENCES
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.results import ALPHA
from parley.analysis.stats.signflips import sign_flip_p
from parley.analysis.stats.tables import Floats
from parley.analysis.stats.two_groups import permuted_difference
from parley.judging.card import JudgesCard
from parley.judging.card.study import CardConfig

IDENTITIES = {
    "gender": ("female", "male"),
    "race": ("black", "white", "asian", "hispanic"),
    "religion": ("muslim", "jewish", "atheist", "christian"),
}
GAP, LEAN, TURN, PLACE, SHIFT, MISSING = 0.8, 0.15, 0.6, 0.5, 0.4, 0.1
"""What is planted: a flaw in SDs of a score, points of a label, a correlation, log-odds, points, a share."""
TRUTH_DRAWS = 400_000
"""Draws for a true value that has no formula."""
CHUNK = 100
"""Simulated judges of one task."""


Sides = Mapping[str, tuple[int, int]]
"""By category: how many bases a stereotype favours, and how many it does not."""


def _samples(
    rng: np.random.Generator, on: float, *, bases: int, graded: int, doses: int, sides: Sides
) -> Iterator[tuple[str, Floats | Sample]]:
    """One simulated judge: the values of each line by base. `on` is 1 if it has the properties, else 0."""
    yield "on-scale", rng.beta(*((8, 2) if on else (5, 5)), bases)
    for prefix, per_flaw in (("judge", doses), ("judge-pairs", 1)):
        good = rng.normal(GAP * on, 1.0, (graded, 1))  # shared by all comparisons of a base
        above = {kind: good > rng.normal(0.0, 1.0, (graded, per_flaw)) for kind in FLAWS}
        yield prefix, np.concatenate(list(above.values()), axis=1).mean(axis=1)
        for kind in FLAWS:
            yield f"{prefix}-{kind}", above[kind].mean(axis=1)
    yield "direction", _alike(rng, graded, 5, TURN * on)
    yield "direction-pairs", _alike(rng, graded, 3, TURN * on)
    yield "repeats", _alike(rng, graded, 5, TURN * on)
    yield "consistency", _alike(rng, graded, 4, TURN * on)
    yield "circles", _circles(rng, graded, on)
    leads = rng.normal(0.0, 1.0, (graded, 5))
    yield "position", np.concatenate([PLACE * on + leads > 0, PLACE * on - leads > 0], axis=1).mean(axis=1)
    yield "length", SHIFT * on + _heavy(rng, graded, 0.5)
    yield "length-pairs", (rng.normal(GAP * on, 2**0.5, graded) > 0).astype(float)
    yield "wording", _moved(rng, graded, on, _texts(graded))
    yield "injection", SHIFT * on + _heavy(rng, bases, 0.5)
    author = {name: _heavy(rng, bases, 0.2) for name in ("own", "other", "person")}
    yield "author-own", LEAN * on + author["own"] - author["other"]
    yield "author-model", LEAN * on + (author["own"] + author["other"]) / 2 - author["person"]
    yield from _label_samples(rng, on, bases, sides)


def _label_samples(
    rng: np.random.Generator, on: float, bases: int, sides: Sides
) -> Iterator[tuple[str, Floats | Sample]]:
    for category, names in IDENTITIES.items():
        reference = REFERENCES[category]
        others = [name for name in names if name != reference]
        score = {name: LEAN * on * (name == names[0]) + _heavy(rng, bases, 0.2) for name in names}
        yield category, np.mean([score[name] for name in others], axis=0) - score[reference]
        for first, second in combinations(names, 2):
            yield f"{first}-{second}", score[first] - score[second]
        off = {name: rng.beta(2 + 3 * on * (name != reference), 18, bases) for name in names}
        yield f"off-scale-{category}", np.mean([off[name] for name in others], axis=0) - off[reference]
        lost = {name: rng.random((bases, 2)) < 0.03 + MISSING * on * (name != reference) for name in names}
        unread = [lost[name].mean(axis=1) for name in others]
        yield f"unread-{category}", np.mean(unread, axis=0) - lost[reference].mean(axis=1)
        if category in sides:
            favoured, rest = (_heavy(rng, size, 0.2) for size in sides[category])
            groups = ((favoured + LEAN * on).tolist(), rest.tolist())
            values = {f"b{place}": value for place, value in enumerate([*groups[0], *groups[1]])}
            yield f"aligned-{category}", Sample(values=values, n=len(values), units={}, sides=groups)


def true_values(planted: bool, graded: int) -> dict[str, float]:
    """The true value of each line that the simulated judge has.

    Args:
        planted: Whether it has the properties.
        graded: Bases with graded responses.
    """
    on = float(planted)
    truth = {"on-scale": 0.8 if on else 0.5, "circles": _true_circles(on), "wording": _true_move(on, _texts(graded))}
    auc = float(stats.norm.cdf(GAP * on / 2**0.5))
    truth |= {f"judge{pairs}{kind}": auc for pairs in ("", "-pairs") for kind in ("", *(f"-{k}" for k in FLAWS))}
    turned = 0.5 + float(np.arcsin(TURN * on)) / np.pi  # of two pairs of normals with this correlation
    truth |= dict.fromkeys(("direction", "direction-pairs", "repeats", "consistency"), turned)
    truth |= {"position": float(stats.norm.cdf(PLACE * on)), "length-pairs": auc}
    truth |= {"length": SHIFT * on, "injection": SHIFT * on, "author-own": LEAN * on, "author-model": LEAN * on}
    off = 5 / 23 - 2 / 20
    for category, names in IDENTITIES.items():
        truth[category] = LEAN * on / (len(names) - 1) if names[0] != REFERENCES[category] else -LEAN * on
        truth |= {f"{a}-{b}": LEAN * on * ((a == names[0]) - (b == names[0])) for a, b in combinations(names, 2)}
        truth |= {
            f"off-scale-{category}": off * on,
            f"unread-{category}": MISSING * on,
            f"aligned-{category}": LEAN * on,
        }
    return truth


def calibrate_card(
    specs: Sequence[Mapping[str, Any]],
    *,
    bases: int,
    graded: int,
    doses: int = 2,
    sides: Sides | None = None,
    simulations: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """By line: how often it (or any of its family) is shown without an effect, how often intervals hold, and power.

    Args:
        specs: The battery's lines.
        bases: Bases with labels.
        graded: Bases with graded responses.
        doses: Doses of a flaw that are read alone.
        sides: Bases that a stereotype favours, or not, by category (default: no such lines).
        simulations: Judges without, and as many with, the properties.
        seed: Seed of all draws.
    """
    counts: dict[str, dict[str, int]] = {}
    families: dict[str, int] = {}
    family_of: dict[str, str] = {}
    for planted in (False, True):
        truth = true_values(planted, graded)
        for number in range(simulations):
            rng = np.random.default_rng([seed, int(planted), number])
            drawn = _samples(rng, float(planted), bases=bases, graded=graded, doses=doses, sides=sides or {})
            samples = {name: _sample(values) for name, values in drawn}
            own = list(every_pair(specs))
            family_of = family_of or {str(spec["id"]): str(spec["family"]) for spec in own}
            tested = {
                spec["id"]: _tested(samples[spec["id"]], spec, truth[spec["id"]])
                for spec in own
                if spec["id"] in samples
            }
            for family in dict.fromkeys(family_of.values()):
                names = [name for name in tested if family_of[name] == family]
                adjusted = holm([tested[name][0] for name in names])
                for name, p in zip(names, adjusted, strict=True):
                    row = counts.setdefault(name, dict.fromkeys(("alarm", "found", "holds", "holds_planted"), 0))
                    row["found" if planted else "alarm"] += p <= ALPHA
                    row["holds_planted" if planted else "holds"] += tested[name][1]
                if not planted and any(p <= ALPHA for p in adjusted):
                    families[family] = families.get(family, 0) + 1
    return pd.DataFrame(
        [
            {
                "line": name,
                "family": family_of[name],
                "shown_without_effect": row["alarm"] / simulations,
                "family_shown_without_effect": families.get(family_of[name], 0) / simulations,
                "coverage_without_effect": row["holds"] / simulations,
                "coverage_with_effect": row["holds_planted"] / simulations,
                "power": row["found"] / simulations,
            }
            for name, row in counts.items()
        ]
    )


def _tested(sample: Sample, spec: Mapping[str, Any], truth: float) -> tuple[float, bool]:
    """The line's p-value, and whether its interval holds.

    Intervals of sign flips and permutations contain exactly what the test does not reject, so the truth is tested;
    finding the ends of a sign-flip interval would take ten times as long.
    """
    values = np.array(list(sample.values.values()))
    if sample.sides is not None:
        first, second = map(np.array, sample.sides)
        return permuted_difference(first, second).p, permuted_difference(first - truth, second).p > ALPHA
    if spec["null"] == 0 and values.any():
        return sign_flip_p(values), sign_flip_p(values - truth) > ALPHA
    test = line_test(sample, spec)
    return test.p, test.low <= truth <= test.high


def _sample(values: Floats | Sample) -> Sample:
    if isinstance(values, Sample):
        return values
    return Sample(values={f"b{n}": float(value) for n, value in enumerate(values)}, n=len(values), units={})


def _heavy(rng: np.random.Generator, size: int, deviation: float) -> Floats:
    """Effects of bases with heavier tails than the normal's: t with five degrees of freedom, scaled to this SD."""
    drawn: Floats = deviation * rng.standard_t(5, size) / (5 / 3) ** 0.5
    return drawn


def _alike(rng: np.random.Generator, bases: int, texts: int, correlation: float) -> Floats:
    """The share of pairs of texts that two readings with this correlation order alike, by base."""
    first = rng.normal(size=(bases, texts))
    second = correlation * first + (1 - correlation**2) ** 0.5 * rng.normal(size=(bases, texts))
    same = [(first[:, a] > first[:, b]) == (second[:, a] > second[:, b]) for a, b in combinations(range(texts), 2)]
    shares: Floats = np.mean(same, axis=0)
    return shares


def _circles(rng: np.random.Generator, bases: int, on: float) -> Floats:
    """1 where three noisy comparisons of three texts make a circle; with the property the texts differ by an SD."""
    worth = on * rng.normal(size=(bases, 3))
    wins = [worth[:, a] - worth[:, b] + rng.normal(size=bases) > 0 for a, b in ((0, 1), (1, 2), (2, 0))]
    circle: Floats = (wins[0] == wins[1]) & (wins[1] == wins[2])
    return circle.astype(float)


def _texts(graded: int) -> int:
    """Texts per base that are read in other words: two, or three where bases are few."""
    return 2 if graded >= 20 else 3


def _moved(rng: np.random.Generator, bases: int, on: float, texts: int) -> Floats:
    """How far another wording moves the texts of a base together: each in the direction of the others' mean."""
    shifts = SHIFT * on * rng.choice([-1.0, 1.0], (bases, 1)) + rng.normal(0, 0.3, (bases, 3))[:, :texts]
    others = (shifts.sum(axis=1, keepdims=True) - shifts) / (texts - 1)
    moved: Floats = (np.sign(others) * shifts).mean(axis=1)
    return moved


@lru_cache(maxsize=2)
def _true_circles(on: float) -> float:
    return float(_circles(np.random.default_rng(1), TRUTH_DRAWS, on).mean()) if on else 0.25


@lru_cache(maxsize=4)
def _true_move(on: float, texts: int) -> float:
    return float(_moved(np.random.default_rng(2), TRUTH_DRAWS, on, texts).mean()) if on else 0.0


def _study_of(size: str) -> JudgesCard:
    return JudgesCard(CardConfig.model_validate({"model": "sim/judge", "size": size}))


def _sides(study: JudgesCard) -> dict[str, tuple[int, int]]:
    """How many bases a stereotype favours the reference on, and how many not, by category."""
    reference = {"gender": "male", "race": "white", "religion": "christian"}
    found = {}
    for category, name in reference.items():
        codes = [code[category] for code in study.analysis_plan()["directions"].values() if category in code]
        sides = tuple(sum(name in code[side] for code in codes) for side in ("favoured", "others"))
        if min(sides) >= max(3, sum(sides) / 3):
            found[category] = (sides[0], sides[1])
    return found


def _chunk(size: str, chunk: int, *, simulations: int) -> pd.DataFrame:
    study = _study_of(size)
    return calibrate_card(
        [line.model_dump() for line in study.battery.line],
        bases=study.size.bases,
        graded=study.size.graded,
        doses=len(study.size.doses),
        sides=_sides(study),
        simulations=simulations,
        seed=chunk,
    )


def calibration_table(size: str, simulations: int, workers: int) -> Iterator[str]:
    """Rows of Markdown: by line, false alarms, coverage and power."""
    chunks = range(math.ceil(simulations / CHUNK))
    with ProcessPoolExecutor(workers) as pool:
        frames = list(pool.map(partial(_chunk, size, simulations=min(CHUNK, simulations)), chunks))
    rates: Any = pd.concat(frames).groupby(["line", "family"], sort=False).mean().reset_index()
    yield f"{size}, {len(frames) * min(CHUNK, simulations):,} judges without and as many with the properties:"
    yield ""
    yield "| line | shown without effect | any of its family | coverage without | coverage with | found |"
    yield "|---|---|---|---|---|---|"
    for row in rates.itertuples():
        shown = (row.shown_without_effect, row.family_shown_without_effect)
        cells = (*shown, row.coverage_without_effect, row.coverage_with_effect, row.power)
        yield f"| `{row.line}` | {' | '.join(f'{cell:.1%}' for cell in cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="How often the card's lines are wrong.")
    parser.add_argument("--size", choices=("default", "subset", "brief"), default="default")
    parser.add_argument(
        "--simulations", type=int, default=2000, help="judges without, and as many with, the properties"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parsed = parser.parse_args()
    for line in calibration_table(parsed.size, parsed.simulations, parsed.workers):
        print(line)


if __name__ == "__main__":
    main()
