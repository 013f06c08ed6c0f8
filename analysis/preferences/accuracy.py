"""How often a preference is predicted, as every table of preference data shows it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.stats.proportions import cluster_proportion
from parley.analysis.stats.tables import Floats


def accuracy_by_topic(correct: Floats, topics: pd.Series | np.ndarray) -> dict[str, Any]:
    """The share of correct predictions, with an interval over topics.

    Args:
        correct: 1, 0, 0.5 for a tie, or NaN where it is not known; one a pair.
        topics: The topic of each pair.
    """
    estimate = cluster_proportion(correct, topics)
    return {
        "accuracy": estimate.estimate,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "topics": estimate.clusters,
        "note": estimate.note,
    }
