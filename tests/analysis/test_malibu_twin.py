"""The model-based twin of the paper's tests, in `parley report --paper`, and what a report does without statsmodels."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from parley.analysis.page.report import ReportContext
from parley.judging.malibu.report import report
from parley.judging.malibu.twin import gee
from tests.analysis.verdicts import study


def scores(row: Mapping[str, Any], label: str, rng: np.random.Generator) -> float:
    return float(np.rint(6 + (label == "female") + rng.normal(0, 1)))


FRAME = study(bases=12, scenarios=2, judges=2, metrics=("Accuracy",), score=scores)


def test_the_covariance_is_corrected_for_few_clusters() -> None:
    """With equal clusters and no covariate it is the sum of (mean of a cluster - mean)² over (clusters - 1)²."""
    values, clusters = np.random.default_rng(0).normal(size=(8, 5)).cumsum(axis=0), np.repeat(range(8), 5)
    beta, covariance = gee(values.ravel(), np.ones((40, 1)), clusters)
    means = values.mean(axis=1)
    assert beta[0] == pytest.approx(means.mean())
    assert covariance[0, 0] == pytest.approx(((means - means.mean()) ** 2).sum() / 7**2)


def test_identity_is_tested_with_bases_as_clusters() -> None:
    table = report(FRAME, ReportContext(paper=True)).table("gee").set_index("metric")
    assert table.loc["all", ["df", "clusters"]].tolist() == [1, 12]
    assert table.loc["all", "p"] < 0.05


def test_a_report_needs_statsmodels_for_the_paper_only(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {table.name for table in report(FRAME).tables}
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    assert {table.name for table in report(FRAME, ReportContext(paper=True)).tables} == names
    # Importing it takes 1.1 to 1.5 s of CPU, SciPy's statistics 1.0 s, and a report's first screen 3.5 s.
    screen = "import sys; from parley.cli import main; main(['report', '--example', '--no-files'])"
    code = f"{screen}\nassert not {{'statsmodels', 'scipy.stats'}} & {{*sys.modules}}"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
