"""Agreement in MALIBU: clusters are bases, and bad input is named."""

from __future__ import annotations

import numpy as np
import pandas as pd

from parley.analysis.stats.agreement import krippendorff_alpha
from tests.analysis.verdicts import agreement


def verdicts(rng: np.random.Generator) -> pd.DataFrame:
    """Four bases of three scenarios, two judges, two rounds; the judges of a base share what they think of it."""
    rows = []
    for base in range(4):
        for scenario in range(3):
            for round in (1, 2):
                for judge in range(2):
                    rows.append(
                        {
                            "unit": f"p1/{base}-{scenario}",
                            "phase": 1,
                            "scenario": f"{base}-{scenario}",
                            "base": f"base {base}",
                            "category": "gender",
                            "identity": "female",
                            "judge": f"J{judge}",
                            "role": "debater",
                            "round": round,
                            "metric": "Accuracy",
                            "value": float(5 + base + rng.integers(-2, 3)),
                            "status": "ok",
                        }
                    )
    return pd.DataFrame(rows)


def test_bases_are_the_clusters() -> None:
    frame = verdicts(np.random.default_rng(0))
    first = agreement(frame, draws=100).iloc[0]
    table = frame[frame["round"] == 1].pivot(index="scenario", columns="judge", values="value")
    by_base = krippendorff_alpha(table.to_numpy(), clusters=[name[0] for name in table.index], draws=100)
    assert (first["estimate"], first["clusters"]) == (by_base.estimate, 4)
    assert first["note"] == "4 clusters: an interval needs 8"


def test_without_a_base_the_scenario_is_the_cluster() -> None:
    frame = verdicts(np.random.default_rng(1))
    for old in (frame.drop(columns="base"), frame.assign(base=""), frame.assign(base=None)):
        assert agreement(old, draws=100)["clusters"].tolist() == [12, 12]
    named = frame.assign(cluster=frame["base"]).drop(columns="base")
    assert agreement(named, draws=100).equals(agreement(frame, draws=100))


def test_a_verdict_that_is_there_twice_counts_once_and_is_named() -> None:
    frame = verdicts(np.random.default_rng(2))
    twice = pd.concat([frame, frame.iloc[:3].assign(value=0.0)], ignore_index=True)
    first, second = agreement(twice, draws=100).to_dict("records")
    once = agreement(frame, draws=100)
    assert [first["estimate"], second["estimate"]] == once["estimate"].tolist()
    assert first["note"].endswith("; 2 repeated verdicts left out")
    assert second["note"].endswith("; 1 repeated verdict left out")
