"""Alpha spending: how far a statistic must go at each of several looks, so that all looks together keep the level.

The spending functions are those of Lan and DeMets (1983), as gsDesign's documentation of sfLDOF and sfLDPocock gives
them; each side of a two-sided test spends half of alpha. A boundary is found look by look: the density of the score
that has not crossed yet is carried from one look to the next by numerical integration (Armitage, McPherson and Rowe
1969), and the boundary is where what crosses it is what may be spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from scipy import optimize
from scipy.special import ndtr, ndtri

from parley.analysis.stats.tables import Floats

FAR = 9.0
"""Standard errors beyond which nothing is looked for: a tail of 1e-19."""
PANELS = 48
"""At most so many of 32 points each: steps from look to look down to a 190th of the boundary's width."""
Density = tuple[Floats, Floats]
"""Where the score may stand that has not crossed yet, and its density there times the weight of integration."""


def obrien_fleming(time: float, alpha: float) -> float:
    """What one side has spent at an information fraction: next to nothing early, nearly all at the end."""
    return float(2 * ndtr(ndtri(alpha / 2) / math.sqrt(time)))


def pocock(time: float, alpha: float) -> float:
    """Spent more evenly."""
    return alpha * math.log1p((math.e - 1) * time)


SPENDING: Mapping[str, Callable[[float, float], float]] = {"obrien-fleming": obrien_fleming, "pocock": pocock}


@lru_cache(maxsize=4096)
def boundaries(
    spending: str, alpha: float, information: tuple[float, ...], times: tuple[float, ...] | None = None
) -> tuple[float, ...]:
    """The |z| that decides at each look of a two-sided test at level `alpha`; inf where nothing may be spent yet.

    `information` rises from look to look (clusters seen so far, on any scale); `times` are the fractions at which
    the spending function is read (default: the information itself). Later looks never change earlier boundaries.
    """
    times = times or information
    rising = all(later > earlier for earlier, later in zip((0.0, *information), information, strict=False))
    if not rising or not all(0 < time <= 1 for time in times) or not 0 < alpha < 1:
        raise ValueError("information must rise from look to look, times lie in (0, 1], alpha between 0 and 1")
    spend, spent, found = SPENDING[spending], 0.0, list[float]()
    density: Density | None = None
    for at, (info, time) in enumerate(zip(information, times, strict=True)):
        step = math.sqrt(info - (information[at - 1] if at else 0.0))
        due, spent = spend(time, alpha / 2) - spent, spend(time, alpha / 2)
        found.append(_boundary(density, step, math.sqrt(info), due))
        density = _carried(density, step, found[-1], math.sqrt(info))
    return tuple(found)


def crossing(bounds: Sequence[float], information: Sequence[float], drift: float = 0.0) -> list[float]:
    """The chance to cross for the first time at each look, either side. `drift` is the mean of z at information 1."""
    return [upper + lower for upper, lower in _sides(bounds, information, drift)]


def median_unbiased(bounds: Sequence[float], information: Sequence[float], z: float) -> float:
    """The drift under which a result that stopped at the last of these looks, at z > 0, is as likely passed as not.

    Looks are ordered by stage: to have crossed earlier is to have gone farther. `bounds` are those of the looks
    before, one fewer than looks.
    """

    def passed(drift: float) -> float:
        return sum(upper for upper, _ in _sides((*bounds, z), information, drift)) - 0.5

    scale = math.sqrt(information[-1])
    return float(optimize.brentq(passed, (z - FAR) / scale, (z + FAR) / scale, xtol=1e-8))


def _sides(bounds: Sequence[float], information: Sequence[float], drift: float) -> Iterator[tuple[float, float]]:
    density: Density | None = None
    before = 0.0
    for bound, info in zip(bounds, information, strict=True):
        step, root, shift = math.sqrt(info - before), math.sqrt(info), drift * (info - before)
        yield _tail(density, step, bound * root - shift), _tail(density, step, bound * root + shift, -1.0)
        density = _carried(density, step, bound, root, shift)
        before = info


def nominal(bound: float) -> float:
    """The two-sided p-value that stands on a boundary."""
    return float(2 * ndtr(-bound))


def _tail(density: Density | None, step: float, edge: float, side: float = 1.0) -> float:
    """The chance that the score lies beyond the edge after a step."""
    if not math.isfinite(edge):
        return 0.0
    if density is None:
        return float(ndtr(-edge / step))
    place, weight = density
    return float((weight * ndtr((side * place - edge) / step)).sum())


def _boundary(density: Density | None, step: float, root: float, due: float) -> float:
    def missing(z: float) -> float:
        return _tail(density, step, z * root) - due

    return math.inf if missing(FAR) >= 0 else float(optimize.brentq(missing, 0.0, FAR, xtol=1e-10))


def _carried(density: Density | None, step: float, bound: float, root: float, shift: float = 0.0) -> Density:
    """The density of the score within the boundary after a step."""
    half = min(bound, FAR) * root
    nodes, weights = _nodes(min(PANELS, max(4, math.ceil(half / (4 * step)))))
    place = half * nodes
    if density is None:
        height = np.exp(-((place - shift) ** 2) / (2 * step**2)) / (step * math.sqrt(2 * math.pi))
    else:
        before, weight = density
        gaps = (place[:, None] - before[None, :] - shift) / step
        height = np.exp(-(gaps**2) / 2) @ weight / (step * math.sqrt(2 * math.pi))
    return place, height * half * weights


@lru_cache
def _nodes(panels: int) -> Density:
    """Gauss and Legendre's rule on [-1, 1], in as many panels as it takes to resolve a step."""
    nodes, weights = np.polynomial.legendre.leggauss(32)
    middles = (2 * np.arange(panels) + 1) / panels - 1
    return (middles[:, None] + nodes / panels).ravel(), np.tile(weights / panels, panels)
