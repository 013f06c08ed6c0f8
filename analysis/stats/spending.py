"""Alpha spending: the boundary of a test statistic at each of several looks, so that all looks together have level
alpha.

The spending functions are those of Lan and DeMets (1983), as gsDesign's documentation of sfLDOF and sfLDPocock gives
them; each side of a two-sided test spends half of alpha. Boundaries are computed look by look: the density of the score
statistic that has not crossed yet is carried from one look to the next by numerical integration (Armitage, McPherson
and Rowe 1969), and the boundary is where the chance of crossing equals the alpha to be spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from scipy import optimize
from scipy.special import ndtr, ndtri

from parley.analysis.stats.tables import Floats

MAX_Z = 9.0
"""Standard errors beyond which the density is ignored: a tail of 1e-19."""
MAX_PANELS = 48
"""Of 32 points each: enough for a step between looks as small as 1/190 of the boundary's width."""
Density = tuple[Floats, Floats]
"""Values of the score that has not crossed yet, and its density there times the integration weight."""


def obrien_fleming(fraction: float, alpha: float) -> float:
    """Alpha spent by one side up to an information fraction: very little early, most of it at the end."""
    return float(2 * ndtr(ndtri(alpha / 2) / math.sqrt(fraction)))


def pocock(fraction: float, alpha: float) -> float:
    """Alpha spent by one side up to an information fraction: more evenly than by O'Brien and Fleming's function."""
    return alpha * math.log1p((math.e - 1) * fraction)


SPENDING: Mapping[str, Callable[[float, float], float]] = {"obrien-fleming": obrien_fleming, "pocock": pocock}


@lru_cache(maxsize=4096)
def boundaries(
    spending: str, alpha: float, information: tuple[float, ...], fractions: tuple[float, ...] | None = None
) -> tuple[float, ...]:
    """The |z| to reach at each look of a two-sided test; inf where no alpha may be spent yet.

    Later looks never change earlier boundaries.

    Args:
        spending: Name of the spending function, a key of `SPENDING`.
        alpha: Significance level of the two-sided test.
        information: Information at each look, rising, on any scale (such as clusters so far).
        fractions: Information fractions that the spending function is read at; None: `information` itself.
    """
    fractions = fractions or information
    rising = all(later > earlier for earlier, later in zip((0.0, *information), information, strict=False))
    if not rising or not all(0 < fraction <= 1 for fraction in fractions) or not 0 < alpha < 1:
        raise ValueError("information must rise from look to look, fractions lie in (0, 1], alpha between 0 and 1")
    spend, spent, bounds = SPENDING[spending], 0.0, list[float]()
    density: Density | None = None
    for look, (info, fraction) in enumerate(zip(information, fractions, strict=True)):
        step = math.sqrt(info - (information[look - 1] if look else 0.0))
        due, spent = spend(fraction, alpha / 2) - spent, spend(fraction, alpha / 2)
        bounds.append(_boundary(density, step, math.sqrt(info), due))
        density = _next_density(density, step, bounds[-1], math.sqrt(info))
    return tuple(bounds)


def crossing(bounds: Sequence[float], information: Sequence[float], drift: float = 0.0) -> list[float]:
    """The chance to cross for the first time at each look, on either side.

    Args:
        bounds: The boundary for |z| at each look.
        information: Information at each look, rising.
        drift: Mean of z at information 1.
    """
    return [upper + lower for upper, lower in _crossing_by_side(bounds, information, drift)]


def median_unbiased(bounds: Sequence[float], information: Sequence[float], z: float) -> float:
    """The median-unbiased estimate of the drift for a trial that stopped at the last of these looks.

    Under it a more extreme result is as likely as a less extreme one. Results are ordered by stage: crossing at an
    earlier look is more extreme.

    Args:
        bounds: The boundaries of the earlier looks, one fewer than looks.
        information: Information at each look, rising.
        z: The statistic at the last look, above 0.
    """

    def excess(drift: float) -> float:
        return sum(upper for upper, _ in _crossing_by_side((*bounds, z), information, drift)) - 0.5

    scale = math.sqrt(information[-1])
    return float(optimize.brentq(excess, (z - MAX_Z) / scale, (z + MAX_Z) / scale, xtol=1e-8))


def stagewise_p(bounds: Sequence[float], information: Sequence[float], z: float) -> float:
    """The two-sided p-value for a trial that stopped at the last of these looks, by stage-wise ordering.

    It is the chance, without an effect, to cross at an earlier look or to reach |z| at this one (Tsiatis, Rosner and
    Mehta 1984).

    Args:
        bounds: The boundaries of the earlier looks, one fewer than looks.
        information: Information at each look, rising, on any scale.
        z: The statistic at the last look, its sign left out.
    """
    return min(1.0, sum(crossing((*bounds, z), information)))


def _crossing_by_side(
    bounds: Sequence[float], information: Sequence[float], drift: float
) -> Iterator[tuple[float, float]]:
    density: Density | None = None
    before = 0.0
    for bound, info in zip(bounds, information, strict=True):
        step, root, shift = math.sqrt(info - before), math.sqrt(info), drift * (info - before)
        yield _tail(density, step, bound * root - shift), _tail(density, step, bound * root + shift, -1.0)
        density = _next_density(density, step, bound, root, shift)
        before = info


def nominal_level(bound: float) -> float:
    """The two-sided p-value of a statistic that lies on the boundary."""
    return float(2 * ndtr(-bound))


def _tail(density: Density | None, step: float, edge: float, side: float = 1.0) -> float:
    """The chance that the score lies beyond the edge after a step."""
    if not math.isfinite(edge):
        return 0.0
    if density is None:
        return float(ndtr(-edge / step))
    score, weight = density
    return float((weight * ndtr((side * score - edge) / step)).sum())


def _boundary(density: Density | None, step: float, root: float, due: float) -> float:
    """The z at which the chance of crossing is `due`; inf where it is larger even at `MAX_Z`."""

    def excess(z: float) -> float:
        return _tail(density, step, z * root) - due

    return math.inf if excess(MAX_Z) >= 0 else float(optimize.brentq(excess, 0.0, MAX_Z, xtol=1e-10))


def _next_density(density: Density | None, step: float, bound: float, root: float, shift: float = 0.0) -> Density:
    """The density of the score within the boundary after a step."""
    half = min(bound, MAX_Z) * root
    nodes, weights = _quadrature(min(MAX_PANELS, max(4, math.ceil(half / (4 * step)))))
    score = half * nodes
    if density is None:
        height = np.exp(-((score - shift) ** 2) / (2 * step**2)) / (step * math.sqrt(2 * math.pi))
    else:
        before, weight = density
        gaps = (score[:, None] - before[None, :] - shift) / step
        height = np.exp(-(gaps**2) / 2) @ weight / (step * math.sqrt(2 * math.pi))
    return score, height * half * weights


@lru_cache
def _quadrature(panels: int) -> Density:
    """Nodes and weights of the Gauss–Legendre rule on [-1, 1], in as many panels as a step needs."""
    nodes, weights = np.polynomial.legendre.leggauss(32)
    middles = (2 * np.arange(panels) + 1) / panels - 1
    return (middles[:, None] + nodes / panels).ravel(), np.tile(weights / panels, panels)
