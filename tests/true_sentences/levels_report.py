"""Reports and comparisons where wordings are few, runs unfinished, effects rare and large, or nothing is preferred.

A ballot is the text's quality, what its base and its label wording add to a label, and noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu import report
from parley.analysis.malibu.aligned import aligned_lines
from parley.analysis.malibu.ballots import comparable
from parley.analysis.malibu.pairs import win_rate_lines
from parley.analysis.malibu.panel import PanelData
from parley.analysis.malibu.planned import planned_lines
from parley.analysis.malibu.talking import HEARING, talking
from parley.analysis.reporting.compare import compare
from parley.analysis.reporting.report import Report
from parley.analysis.stats.results import ALIKE, DIFFERENT, SMALL, Line
from tests.true_sentences import Cell

LABELS = {
    "gender": ("female", "male"),
    "race": ("black", "white", "asian", "hispanic"),
    "religion": ("muslim", "jewish", "atheist", "christian"),
}
SCALE = (1.0, 9.0)
CONSTANT = {
    **{"phase": 1, "stage": "silent", "round": 0, "judge": "J", "role": "debater", "metric": "Overall", "status": "ok"},
    **{"model": "m", "control": "", "repeat": 0, "subject": "", "text": None, "scale": "1-9"},
}


def ballots(
    rng: np.random.Generator,
    *,
    bases: int,
    wordings: int | None = None,
    scenarios: int = 2,
    base_sd: float = 0.03,
    wording_sd: float = 0.1,
    noise: float = 0.05,
    gaps: Mapping[str, float] | None = None,
    texts: np.ndarray | None = None,
    categories: Sequence[str] = tuple(LABELS),
) -> pd.DataFrame:
    """Silent ballots on every scenario under every label.

    Args:
        rng: Of all draws.
        bases: Number of bases.
        wordings: Label wordings of a category, which bases share; None: one of its own for each base.
        scenarios: Scenarios per base.
        base_sd: SD of what a base adds to a label.
        wording_sd: SD of what a label wording adds to a label.
        noise: SD of a ballot.
        gaps: What a label adds everywhere.
        texts: The quality of each text, by base and scenario, where another judge reads the same ones.
        categories: Whose labels are shown.
    """
    count, shape = wordings or bases, (bases, scenarios)
    base, scenario = (place.ravel() for place in np.indices(shape))
    quality = (rng.normal(6, 1, shape) if texts is None else texts).ravel()
    parts = []
    for category in categories:
        wording = base % count
        for label in LABELS[category]:
            own = rng.normal(0, base_sd, bases)[base] + rng.normal(0, wording_sd, count)[wording]
            value = quality + own + (gaps or {}).get(label, 0.0) + rng.normal(0, noise, len(base))
            parts.append(
                pd.DataFrame({"base": base, "scenario": scenario, "wording": wording, "value": value.clip(*SCALE)})
                .assign(category=category, identity=label)
            )  # fmt: skip
    frame = pd.concat(parts, ignore_index=True)
    frame["scenario"] = "b" + frame["base"].astype(str) + "-" + frame["scenario"].astype(str)
    frame["base"] = "b" + frame["base"].astype(str)
    frame["wording"] = frame["category"] + "-w" + frame["wording"].astype(str)
    unit = "s1/" + frame["scenario"] + "/" + frame["identity"]
    return frame.assign(unit=unit, question="q0", **CONSTANT)


def _differs(found: Report) -> bool:
    return any(line.shown for forest in found.forests for line in forest.lines)


def _false_gap(rng: np.random.Generator, wordings: int | None, gaps: Mapping[str, float] | None = None) -> bool:
    """Two judges who treat labels alike on average; what a wording adds to a label differs between them."""
    texts = rng.normal(6, 1, (60, 2))
    sides = [ballots(rng, bases=60, wordings=wordings, texts=texts, gaps=own) for own in (None, gaps)]
    found = compare(*map(comparable, sides), ("one", "two"))
    return any(line.shown for forest in found.forests if forest.name.startswith("gaps") for line in forest.lines)


def _unfinished(rng: np.random.Generator, kept: float) -> bool:
    """A run whose lowest ballots are missing, and another of the same judge."""
    texts = rng.normal(6, 1, (60, 2))
    first, second = (ballots(rng, bases=60, texts=texts, noise=0.4) for _ in range(2))
    done = second["value"] >= second["value"].quantile(1 - kept)
    known = {"lost": set(second.loc[~done, "unit"]), "scales": {"": SCALE}}
    found = compare(comparable(first), comparable(second[done]), ("one", "two"), **known)
    return _differs(found)


def _planned(frame: pd.DataFrame, margin: float = 0.1) -> dict[tuple[str, str], list[Line]]:
    """The planned lines about scores, by both sides."""
    found: dict[tuple[str, str], list[Line]] = {}
    for line in planned_lines(PanelData(frame), margin):
        found.setdefault((line.about["first"], line.about["second"]), []).append(line)
    return found


def _contradicts(rng: np.random.Generator, bases: int) -> bool:
    """Whether two labels have two lines, two intervals or two verdicts; what female adds is near the margin."""
    lines = _planned(ballots(rng, bases=bases, wording_sd=0.03, gaps={"female": 0.06}))
    labels = [frozenset(key) for key in lines]
    return len(set(labels)) < len(labels) or any(len(own) > 1 for own in lines.values())


def _alike(rng: np.random.Generator, bases: int, wordings: int | None = None, lost: float = 2.0) -> bool:
    """Whether female and male are called alike although one base, or wording, in ten takes 2 points from female."""
    frame = ballots(rng, bases=bases, wordings=wordings, wording_sd=0.02, categories=("gender",))
    column = "base" if wordings is None else "wording"
    kinds = frame[column].unique()
    rare = frame[column].isin(kinds[rng.random(len(kinds)) < 0.1]) & (frame["identity"] == "female")
    frame["value"] = (frame["value"] - lost * rare).clip(*SCALE)
    return _planned(frame)["female", "male"][0].verdict == ALIKE


def comparisons(
    rng: np.random.Generator,
    *,
    bases: int,
    wordings: int | None = None,
    base_sd: float = 0.5,
    wording_sd: float = 0.5,
    noise: float = 0.5,
) -> pd.DataFrame:
    """Silent comparisons of every two labels in both orders, by log-odds; nobody is preferred on average.

    Args:
        rng: Of all draws.
        bases: Number of bases.
        wordings: Label wordings, each of which every base has; None: one of its own for each base.
        base_sd: SD of what a base adds to a label.
        wording_sd: SD of what a label wording adds to a label.
        noise: SD of a comparison's log-odds.
    """
    parts = []
    base, wording = np.indices((bases, wordings or 1))
    base, wording = base.ravel(), base.ravel() if wordings is None else wording.ravel()
    for category, labels in LABELS.items():
        leans = [
            rng.normal(0, base_sd, bases)[base] + rng.normal(0, wording_sd, wordings or bases)[wording] for _ in labels
        ]
        for x, y in combinations(range(len(labels)), 2):
            lead = leans[x] - leans[y] + rng.normal(0, noise, len(base))
            for order in (0, 1):
                shown = (labels[x], labels[y]) if order == 0 else (labels[y], labels[x])
                own = pd.DataFrame({"base": base, "wording": wording, "lead": lead}).assign(
                    category=category, identity=labels[x], other=labels[y], order=order, assignment=0,
                    identity_a=shown[0], identity_b=shown[1], response_a=1 + order, response_b=2 - order,
                )  # fmt: skip
                parts.append(own.assign(value=(1 if order == 0 else -1) * own["lead"]))
    frame = pd.concat(parts, ignore_index=True)
    pair = frame["identity"] + "-" + frame["other"]
    words = frame["category"] + "-w" + frame["wording"].astype(str)
    base_names = "b" + frame["base"].astype(str)
    unit = "s2/" + base_names + "/" + pair + "/o" + frame["order"].astype(str) + "/" + words
    constant = {**CONSTANT, "phase": 2, "metric": "log-odds"}
    return frame.assign(unit=unit, base=base_names, scenario=base_names, wording=words, question="q0", **constant)


def _rates(rng: np.random.Generator, **design: Any) -> list[Line]:
    return win_rate_lines(PanelData(comparisons(rng, **design)))


def _named(rng: np.random.Generator, **design: Any) -> bool:
    """Whether the highest or the lowest win rate excludes one half."""
    lines = sorted(_rates(rng, **design), key=lambda line: line.estimate)
    return any(not line.low <= 0.5 <= line.high for line in (lines[0], lines[-1]))


def _sure_wins(rng: np.random.Generator, truth: float) -> bool | None:
    """60 bases of 1 to 10 scenarios, each of which 'female' wins or loses altogether."""
    sizes = rng.integers(1, 11, 60)
    base = np.repeat(np.arange(60), sizes)
    lead = np.where(rng.random(60) < truth, 1.0, -1.0)[base]
    scenario = "b" + pd.Series(base).astype(str) + "-" + pd.Series(np.arange(len(base))).astype(str)
    parts = [
        pd.DataFrame({"base": base, "scenario": scenario, "value": lead * (1 if order == 0 else -1)}).assign(
            category="gender", identity="female", other="male", order=order, assignment=0, wording="", question="q0",
            identity_a="female" if order == 0 else "male", identity_b="male" if order == 0 else "female",
            response_a=1 + order, response_b=2 - order,
        )
        for order in (0, 1)
    ]  # fmt: skip
    frame = pd.concat(parts, ignore_index=True)
    unit = "s2/" + frame["scenario"] + "/" + frame["order"].astype(str)
    constant = {**CONSTANT, "phase": 2, "metric": "log-odds"}
    frame = frame.assign(unit=unit, base="b" + frame["base"].astype(str), **constant)
    line = next(line for line in win_rate_lines(PanelData(frame)) if line.label == "female")
    return not line.low <= truth <= line.high if line.bounded else None


def _varies(rng: np.random.Generator) -> bool:
    """Whether bases are said to vary, where only what a label wording adds does."""
    frame = ballots(rng, bases=30, base_sd=0.0, wording_sd=0.4, noise=0.1, categories=("gender", "race"))
    return any("from base to base" in text for text in report(frame).words)


def _aligned(rng: np.random.Generator, sizes: tuple[int, int], spreads: tuple[float, float]) -> bool | None:
    """Whether scores are said to follow stereotypes, where bases that are coded one way vary more."""
    bases = sum(sizes)
    lead = np.concatenate([rng.normal(0, spread, size) for size, spread in zip(sizes, spreads, strict=True)])
    frame = ballots(rng, bases=bases, wording_sd=0.0, noise=0.0, base_sd=0.0, categories=("race",))
    own = lead[frame["base"].str[1:].astype(int)] * (frame["identity"] == "white")
    frame = frame.assign(value=frame["value"] / 10 + own, scale="-20-20", wording="")
    sides = ["favoured"] * sizes[0] + ["others"] * sizes[1]
    directions = {f"b{place}": {"race": {side: ("white",)}} for place, side in enumerate(sides)}
    (line,) = aligned_lines(PanelData(frame), directions)
    return None if np.isnan(line.p) else bool(line.shown)


NOISY = {"gender": 0.3, "race": 0.1, "religion": 0.1}


def _size_missed(rng: np.random.Generator, bases: int) -> bool:
    """Whether a second study misses a difference of the noisiest contrast that the first said 80% of studies find."""

    def study(added: float) -> pd.DataFrame:
        parts = [
            ballots(rng, bases=bases, wording_sd=sd / 2**0.5, base_sd=0.0, noise=0.01, categories=(category,),
                    gaps={"female": added})
            for category, sd in NOISY.items()
        ]  # fmt: skip
        return pd.concat(parts, ignore_index=True)

    sizes = report(study(0.0)).table("mde")
    row = sizes[sizes["category"] == "gender"].iloc[0] if "category" in sizes else sizes.iloc[0]
    return _planned(study(float(row["mde"])))["female", "male"][0].verdict not in (DIFFERENT, SMALL)


def talk(
    rng: np.random.Generator, *, leader: float, follow: float, bases: int = 10, on_top: bool = True
) -> pd.DataFrame:
    """Silent ballots on 40 bases, and debates of four judges on ten, under every label.

    Args:
        rng: Of all draws.
        leader: What one judge adds to 'female'.
        follow: How far the others go to the leader's opinion of a label, where they hear it.
        bases: Number of debated bases.
        on_top: Whether control units, whose judges hear ballots on another label, are further units.
    """
    silent, rows = ballots(rng, bases=40, gaps={"female": leader / 4}), []
    for base in range(bases):
        quality = rng.normal(6.5, 0.5)
        for category, labels in LABELS.items():
            for label in labels:
                own = np.array([leader * (label == "female"), 0.0, 0.0, 0.0])
                control = rng.random() < 1 / 3
                for heard in (False, True) if control and on_top else (control,):
                    noise = rng.normal(0, 0.3, (3, 4))
                    heeded = 0.0 if heard else follow * own[0]
                    moments = quality + np.array([own, own, np.where(own == own[0], own, heeded)]) + noise
                    other = next(name for name in labels if name != label)
                    rows += [
                        (f"t1/b{base}/{label}/{heard}", f"b{base}", category, label, other if heard else label, judge,
                         number, moments[number, judge])
                        for number in range(3) for judge in range(4)
                    ]  # fmt: skip
    names = ["unit", "base", "category", "identity", "heard", "judge", "round", "value"]
    aloud = pd.DataFrame(rows, columns=names)
    aloud = aloud.assign(
        **{key: value for key, value in CONSTANT.items() if key not in ("round", "judge", "stage")},
        stage="talk", judge="J" + aloud["judge"].astype(str), scenario=aloud["base"] + "-0", question="q0",
        wording=aloud["category"] + "-w" + aloud["base"].str[1:], value=aloud["value"].clip(*SCALE),
    )  # fmt: skip
    return pd.concat([silent.assign(heard=""), aloud], ignore_index=True)


def _hearing(rng: np.random.Generator, **truth: float) -> bool:
    """Whether hearing others is said to change the gap between female and male."""
    lines = talking(PanelData(talk(rng, **truth)))  # type: ignore[arg-type]
    return any(line.shown for line in lines if line.about["step"] == HEARING and line.about["category"] == "gender")


def _any_change(rng: np.random.Generator) -> bool:
    """Whether the test that is planned finds a change although nobody listens."""
    lines = talking(PanelData(talk(rng, leader=-1.0, follow=0.0)))
    return any(line.shown for line in lines if not line.secondary)


COMPARED = "compare: the two treat labels differently"
CELLS = [
    *(
        Cell(
            sentence=COMPARED,
            setting=f"they do not, {wordings} wordings for 60 bases",
            trial=partial(_false_gap, wordings=wordings),
            limit=0.07,
            before=before,
        )
        for wordings, before in ((12, "74%"), (20, "49%"), (26, "36%"), (60, ""))
    ),
    Cell(
        sentence="compare misses that the two treat a label differently",
        setting="by 0.1, 60 bases with a wording each",
        trial=lambda rng: not _false_gap(rng, None, {"female": 0.1}),
        limit=0.3,  # a z test that knows the SD of 0.22 misses 26%, after correction for 12 pairs
    ),
    *(
        Cell(
            sentence="compare: the two score differently",
            setting=f"they do not, the lowest {1 - kept:.0%} of one run's ballots are missing",
            trial=partial(_unfinished, kept=kept),
            limit=0.07,
            before="100%",
        )
        for kept in (0.27, 0.95)
    ),
    *(
        Cell(
            sentence="two labels are both different and alike",
            setting=f"a difference near the margin, {bases} bases",
            trial=partial(_contradicts, bases=bases),
            limit=0.0,
            before=before,
        )
        for bases, before in ((9, "81%"), (60, "22%"))
    ),
    *(
        Cell(
            sentence="two labels are alike",
            setting=f"one {kind} in ten loses 2 points, {bases} bases" + (f", {wordings} wordings" if wordings else ""),
            trial=partial(_alike, bases=bases, wordings=wordings),
            limit=0.07,
            before=before,
        )
        for bases, wordings, kind, before in (
            (10, None, "base", "34%"),
            (20, None, "base", "13%"),
            (40, None, "base", "1.5%"),
            (60, 12, "wording", "27%"),
        )
    ),
    Cell(
        sentence="that two labels are alike is missed",
        setting="they are, with an SD of 0.04 between bases, 40 bases",
        trial=lambda rng: not _alike(rng, 40, lost=0.0),
        limit=0.2,
    ),
    *(
        Cell(
            sentence="the highest or lowest win rate excludes 50%",
            setting=f"no preference, {words}",
            trial=partial(_named, **design),
            limit=0.07,
            before=before,
        )
        for words, design, before in (
            ("20 bases with a wording each", {"bases": 20}, "23 to 35%"),
            ("60 bases with a wording each", {"bases": 60}, "23 to 35%"),
            ("20 bases × 8 wordings", {"bases": 20, "wordings": 8}, "18% a line"),
        )
    ),
    *(
        Cell(
            sentence="win rate, 95% interval",
            setting=f"a true rate of {truth:g}, 60 bases of 1 to 10 scenarios that win or lose altogether",
            trial=partial(_sure_wins, truth=truth),
            limit=0.07,
            before=before,
        )
        for truth, before in ((0.99, "13%"), (0.97, ""), (0.9, ""))
    ),
    Cell(
        sentence="a difference varies from base to base",
        setting="only label wordings vary, 30 bases with a wording each",
        trial=_varies,
        limit=0.07,
        before="95%",
    ),
    *(
        Cell(
            sentence="scores follow stereotypes",
            setting=f"they do not, {sizes[0]} bases with an SD of 1 against {sizes[1]} with {spread:g}",
            trial=partial(_aligned, sizes=sizes, spreads=(1.0, spread)),
            limit=0.07,
            before=before,
        )
        for sizes, spread, before in (((10, 5), 3.0, "16%"), ((14, 8), 3.0, ""), ((24, 16), 3.0, ""))
    ),
    *(
        Cell(
            sentence="a difference as large as the report says 80% of studies find is missed",
            setting=f"the noisiest contrast (SD 0.3, others 0.1), {bases} bases",
            trial=partial(_size_missed, bases=bases),
            limit=0.25,
            before="90%",
        )
        for bases in (20, 40)
    ),
    Cell(
        sentence="that hearing others changes a gap is missed",
        setting="others follow a leader: the gap goes from −0.70 to −2.2, ten debated bases",
        trial=lambda rng: not _hearing(rng, leader=-2.8, follow=0.7),
        limit=0.2,
        before="100%",
    ),
    Cell(
        sentence="hearing others changes the gap",
        setting="it does not, one judge has an opinion of a label, ten debated bases",
        trial=_any_change,
        limit=0.07,
    ),
]
