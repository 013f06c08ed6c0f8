"""Simulated judges that do not share the assumptions of our tests.

A score is mean + base + scenario + judge + panel + noise, rounded and clipped to 0 to 10, so that scores tie. `panel`
is shared by the judges of one conversation. Added to that is what spoils a test: effects that differ by
base, judge or model, replies that go unread, bases of unequal size, noise that is not normal, judges who look at the
order.

Whatever makes two identities differ is divided between them (half up, half down), so that rounding and clipping treat
both alike and a mean difference of 0 stays exactly 0 on the scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from parley.analysis.stats.tables import Floats, Ints

IDENTITIES = 4
BASE_SD, SCENARIO_SD, JUDGE_SD = 0.8, 0.6, 0.5
TOP = 10.0
LARGEST = 30
"""Scenarios of the largest base where bases are unequal; the smallest has one."""
LOW_SCORE, LOW_UNREAD, MOST_UNREAD, REFUSED, UNREAD = 5, 0.5, 0.9, 0.9, 0.15
"""A score that counts as low; unread shares: of low scores (half, most), of one judge's replies, of all replies."""
UNITS = 4
"""Phase 2: both orders, each label on either response. `compare`: units per scenario."""
Missing = Literal["", "low scores unread", "most low scores unread", "one judge refuses", "at random"]
Noise = Literal["normal", "skewed", "heavy-tailed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of the calibration: a design, and what is wrong with its judges.

    Args:
        name: What distinguishes the cell.
        group: The part of the table it belongs to.
        data: What is simulated: scores (phase 1), preferences (phase 2), two models on the same units, or silent
            ballots (`silent`), whose differences are simulated directly: effect, base, wording, both and scenario.
        bases: Bases, which are the clusters.
        scenarios: Scenarios per base.
        judges: Judges per conversation.
        unequal: Bases have 1 to 30 scenarios.
        effect: Difference of the first two identities, in points (phase 2: in standard deviations of a judge).
        base_identity: SD of the effects of base × identity, for each identity.
        skewed_effects: Base × identity effects are skewed, and only the first identity has them.
        opposite: The difference is this many points in some bases, and as many in the other direction in the rest.
        direction: Which bases go which way: at random, or exactly half.
        judge_identity: SD of the effects of judge × identity.
        judges_drawn: These effects are those of judges drawn at random; else they sum to 0 over the panel.
        noise: Distribution of panel and noise.
        mean: Mean score.
        spread: SD of panel and noise together.
        icc: The panel's share of that variance.
        missing: Which replies go unread.
        position: Phase 2: how much the place in the prompt counts; infinite: only the place counts.
        tie: Phase 2: half the width of the zone in which a judge sees a tie.
        model_scenario: `compare`: SD of the effects of model × scenario.
        model_base: `compare`: SD of the effects of model × base.
        wordings: Silent: label wordings, dealt to bases in turn; 0: as many as are needed.
        wording_identity: Silent: SD of a difference over wordings.
        both_identity: Silent: SD of a difference over bases in a wording.
    """

    name: str
    group: str = ""
    data: Literal["scores", "preferences", "models", "silent"] = "scores"
    bases: int = 20
    scenarios: int = 10
    judges: int = 4
    unequal: bool = False
    effect: float = 0.0
    base_identity: float = 0.0
    skewed_effects: bool = False
    opposite: float = 0.0
    direction: Literal["at random", "half"] = "at random"
    judge_identity: float = 0.0
    judges_drawn: bool = False
    noise: Noise = "normal"
    mean: float = 7.0
    spread: float = 1.2
    icc: float = 0.3
    missing: Missing = ""
    position: float = 0.0
    tie: float = 0.3
    model_scenario: float = 0.0
    model_base: float = 0.0
    wordings: int = 0
    wording_identity: float = 0.0
    both_identity: float = 0.0

    @property
    def differs_by_base(self) -> bool:
        """Whether the difference of the first two identities is not the same in all bases."""
        return bool(self.base_identity or self.opposite)

    @property
    def sizes(self) -> Ints:
        """Scenarios of each base."""
        if not self.unequal:
            return np.full(self.bases, self.scenarios)
        sizes = np.rint(np.geomspace(1, LARGEST, self.bases)).astype(np.int64)
        return np.random.default_rng(0).permutation(sizes)  # else size and order (of looks, of signs) correlate

    @property
    def base_of(self) -> Ints:
        """The base of each scenario."""
        return np.repeat(np.arange(self.bases), self.sizes)


def scores(cell: Cell, simulations: int, rng: np.random.Generator) -> Floats:
    """Phase 1: complete scores by simulation, identity, scenario and judge."""
    base_of, panels = cell.base_of, (simulations, IDENTITIES, len(cell.base_of), 1)
    total = cell.mean + _noise(cell, (*panels[:3], cell.judges), rng) * cell.spread * np.sqrt(1 - cell.icc)
    total += _noise(cell, panels, rng) * cell.spread * np.sqrt(cell.icc)
    total += rng.normal(0.0, BASE_SD, (simulations, 1, cell.bases, 1))[:, :, base_of]
    total += rng.normal(0.0, SCENARIO_SD, (simulations, 1, len(base_of), 1))
    total += rng.normal(0.0, JUDGE_SD, (simulations, 1, 1, cell.judges))
    total += _effects_by_base(cell, simulations, rng)[:, :, base_of, None]
    total += _effects_by_judge(cell, simulations, rng)[:, :, None, :]
    points: Floats = np.clip(np.rint(total), 0.0, TOP)
    return points


def unread(cell: Cell, complete: Floats, rng: np.random.Generator) -> Floats:
    """The scores with NaN for those that go unread; only the first identity loses any."""
    if not cell.missing:
        return complete
    given = complete.copy()
    first = given[:, 0]
    chance = rng.random(first.shape)
    if "low scores" in cell.missing:
        share = LOW_UNREAD if cell.missing == "low scores unread" else MOST_UNREAD
        first[(first <= LOW_SCORE) & (chance < share)] = np.nan
    elif cell.missing == "one judge refuses":
        first[..., 0][chance[..., 0] < REFUSED] = np.nan
    else:
        first[chance < UNREAD] = np.nan
    return given


def preferences(cell: Cell, simulations: int, rng: np.random.Generator) -> Floats:
    """Phase 2: the panel's choice by simulation, scenario and unit: 1 the first identity, -1 the second, 0 a tie.

    Every scenario is run in both orders, with each label on either response.
    """
    base_of = cell.base_of
    shape = (simulations, len(base_of), UNITS)
    response, place = np.array([1, 1, -1, -1]), np.array([1, -1, 1, -1])
    by_base = _effects_by_base(cell, simulations, rng)
    lean = (by_base[:, 0] - by_base[:, 1])[:, base_of, None] + response * rng.normal(0.0, 1.0, (*shape[:2], 1))
    lean = lean + _noise(cell, shape, rng) * np.sqrt(cell.icc)
    leans = lean[..., None] + _noise(cell, (*shape, cell.judges), rng) * np.sqrt(1 - cell.icc)
    leans = (
        np.broadcast_to(place[:, None], leans.shape)
        if np.isinf(cell.position)
        else leans + cell.position * place[:, None]
    )
    votes = np.where(np.abs(leans) > cell.tie, np.sign(leans), 0.0)
    first, second, ties = ((votes == vote).sum(axis=3) for vote in (1, -1, 0))
    won = np.where((first > second) & (first > ties), 1.0, 0.0)
    return np.where((second > first) & (second > ties), -1.0, won)


def model_scores(cell: Cell, simulations: int, rng: np.random.Generator) -> Floats:
    """Two models on the same units: what each gets, by simulation, model, scenario and unit, before rounding."""
    base_of = cell.base_of
    shape = (simulations, 2, len(base_of), UNITS)
    total = cell.mean + _noise(cell, shape, rng) * cell.spread
    total += rng.normal(0.0, BASE_SD, (simulations, 1, cell.bases, 1))[:, :, base_of]
    total += rng.normal(0.0, SCENARIO_SD, (simulations, 1, len(base_of), 1))
    total += rng.normal(0.0, cell.model_scenario, (simulations, 2, len(base_of), 1))
    total += rng.normal(0.0, cell.model_base, (simulations, 2, cell.bases, 1))[:, :, base_of]
    total[:, 0] += cell.effect / 2
    total[:, 1] -= cell.effect / 2
    return total


def _noise(cell: Cell, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Noise of mean 0 and SD 1; skewed: rare low scores, as of a lenient judge."""
    if cell.noise == "skewed":
        return np.asarray(1.0 - rng.exponential(1.0, shape))
    if cell.noise == "heavy-tailed":
        return np.asarray(rng.standard_t(3, shape) / np.sqrt(3))
    return rng.normal(0.0, 1.0, shape)


def _effects_by_base(cell: Cell, simulations: int, rng: np.random.Generator) -> Floats:
    """What each identity gains in each base, by simulation, identity and base."""
    shape = (simulations, IDENTITIES, cell.bases)
    if cell.skewed_effects:
        effects = np.zeros(shape)
        effects[:, 0] = cell.base_identity * (rng.exponential(1.0, (simulations, cell.bases)) - 1.0)
    else:
        effects = rng.normal(0.0, cell.base_identity, shape)
    difference = cell.effect + cell.opposite * _signs(cell, simulations, rng)
    effects[:, 0] += difference / 2
    effects[:, 1] -= difference / 2
    return effects


def _signs(cell: Cell, simulations: int, rng: np.random.Generator) -> NDArray[np.int64]:
    if cell.direction == "half":
        return np.broadcast_to(np.resize(np.array([1, -1]), cell.bases), (simulations, cell.bases))
    return 2 * rng.integers(0, 2, (simulations, cell.bases)) - 1


def _effects_by_judge(cell: Cell, simulations: int, rng: np.random.Generator) -> Floats:
    effects = rng.normal(0.0, cell.judge_identity, (simulations, IDENTITIES, cell.judges))
    return effects if cell.judges_drawn else effects - effects.mean(axis=2, keepdims=True)
