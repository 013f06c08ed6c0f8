"""People's labels: the draw's probabilities, estimates that labels correct (ppi_py, plain loops), the section."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from parley.analysis.labels import non_response, rated_texts, shown_probability
from parley.analysis.reporting.corrected import corrected_lines, corrected_section
from parley.analysis.reporting.judged_texts import JudgedTexts
from parley.analysis.stats.prediction_powered import (
    LabelledTexts,
    corrected_difference,
    corrected_mean,
    labels_for,
    width_by_labels,
)
from parley.analysis.stats.results import DIFFERENT, Line
from parley.reports.labels.draws import probabilities, systematic

SPREAD = [0.0, 0.0, 1.0, 2.0, 5.0, 0.5, 0.0, 9.0]


def test_a_draw_has_the_stated_size_and_probabilities():
    chances = probabilities(SPREAD, 3, 0.4)
    generator = random.Random(0)
    drawn: Counter[int] = Counter()
    for _ in range(4000):
        order = list(range(8))
        generator.shuffle(order)
        sample = [order[n] for n in systematic([chances[n] for n in order], generator.random())]
        assert len(set(sample)) == 3
        drawn.update(sample)
    assert [drawn[n] / 4000 for n in range(8)] == pytest.approx(chances, abs=0.03)  # 4 standard errors


def frames(labels, drawn):
    columns = ["draw", "text_id", "probability", "rater", "question", "value", "simulated"]
    table = pd.DataFrame(labels, columns=columns).assign(subject="", judge_value=1.0)
    table["unit"] = table["text_id"]
    table["position"] = table.groupby(
        ["draw", "rater"]
    ).cumcount()  # each rater in its own order, unless a test says so
    return table, pd.DataFrame(drawn, columns=["draw", "unit", "text_id", "probability", "position"])


def test_a_text_is_shown_with_its_probability_however_early_raters_stop():
    """Two draws of three texts of four; a rater stops after two items of the first and one of the second."""
    generator = random.Random(1)
    shown: Counter[str] = Counter()
    for _ in range(4000):
        first, second = generator.sample("abcd", 3), generator.sample("abcd", 2)
        shown.update({*first[:2], *second[:1]})
    drawn = [(1, text, text, 3 / 4, n if n < 3 else None) for n, text in enumerate("abcd")]
    drawn += [(2, text, text, 2 / 4, n if n < 2 else None) for n, text in enumerate("abcd")]
    rows = [(1, "a", 0.75, "Ann", "q", 5.0, False), (1, "b", 0.75, "Ann", "q", None, False)]
    rows += [(2, "a", 0.5, "Ann", "q", 5.0, False)]
    computed = shown_probability(*frames(rows, drawn))
    assert computed["d"] == pytest.approx(1 - (1 - 1 / 2) * (1 - 1 / 4))
    assert [shown[text] / 4000 for text in "abcd"] == pytest.approx(list(computed[list("abcd")]), abs=0.035)


def test_what_a_rater_labels_after_leaving_an_item_out_may_have_been_chosen():
    drawn = [(1, text, text, 1.0, place) for place, text in enumerate("abcde")]
    labels, population = frames([(1, text, 1.0, "Ann", "q", 5.0, False) for text in "bde"], drawn)
    labels["position"] = [0, 2, 1]  # her own order is b, e, d, …
    assert sorted(rated_texts(labels, population, "q")["text_id"]) == ["b", "d", "e"]
    labels["position"] = [0, 3, 1]  # she left the third one out
    assert sorted(rated_texts(labels, population, "q")["text_id"]) == ["b", "e"]
    imported = labels.assign(unit=["a", "b", "e"], text_id=["a", "b", "e"], position=[4, 2, 3])
    assert sorted(rated_texts(imported, population, "q")["text_id"]) == ["a", "b"], "in the draw's order, up to the gap"


def test_raters_are_averaged_and_neither_queues_nor_simulated_labels_enter():
    drawn = [(1, "u", "a", 0.5, 0), (1, "v", "a", 0.5, None), (1, "w", "b", 0.5, 1), (2, "x", "c", None, 0)]
    rows = [
        (1, "a", 0.5, "Ann", "q", 4.0, False),
        (1, "a", 0.5, "Ben", "q", 8.0, False),
        (1, "a", 0.5, "sim", "q", 0.0, True),
        (1, "b", 0.5, "Ann", "q", None, False),
        (2, "c", None, "Ann", "q", 9.0, False),
    ]
    labels, population = frames(rows, drawn)
    (text,) = rated_texts(labels, population, "q").itertuples()
    assert (text.text_id, text.value, text.raters, text.variance, text.probability) == ("a", 6.0, 2, 8.0, 0.5)
    only_simulated = rated_texts(labels[labels["simulated"]], population, "q")
    assert list(only_simulated["simulated"]) == [True]
    assert rated_texts(labels, population, "other").empty
    skips = non_response(labels).set_index("rater")
    assert (skips.loc["Ann", "answered"], skips.loc["Ann", "skipped"]) == (2, 1)


# ppi_py 0.2.3:
#   ppi_mean_pointestimate(Y, F, U)    5.20793527222676, with its tuned weight 0.22350650881321352
#   ppi_mean_ci(Y, F, U, alpha=0.05)   4.75301402, 5.66285653
Y = [5.5, 6.2, 5.5, 3.0, 6.4, 5.7, 4.2, 5.9, 5.5, 5.4, 5.0, 5.8]
F = [5.3, 6.2, 5.5, 4.5, 6.5, 5.8, 4.4, 5.9, 5.9, 5.6, 6.4, 6.8]
U = [2.6, 3.6, 5.3, 4.7, 6.1, 6.4, 7.9, 3.8, 5.6, 7.3, 6.8, 5.4, 5.6, 3.8, 4.8, 5.4, 4.2, 5.0, 4.7, 3.7]
SINGLE = LabelledTexts(judged=[*F, *U], labels=[*Y, *[math.nan] * len(U)], clusters=range(len(F) + len(U)))


def _texts(rng: np.random.Generator, bases: int = 40, each: int = 5, share: float = 0.5) -> LabelledTexts:
    clusters = np.repeat(np.arange(bases), each)
    people = 6 + rng.normal(0, 0.5, bases)[clusters] + rng.normal(0, 1, len(clusters))
    judged = people + 1 + rng.normal(0, 0.5, len(clusters))
    return LabelledTexts(
        judged=judged, labels=np.where(rng.random(len(people)) < share, people, np.nan), clusters=clusters
    )


def _width(line: Line, by: str = "") -> float:
    return line.also[f"{by}high"] - line.also[f"{by}low"] if by else line.high - line.low


def test_one_text_per_cluster_and_one_fold_is_ppi_py_with_t_and_the_labels_degrees_of_freedom() -> None:
    found = corrected_mean(SINGLE, folds=1)
    assert found.estimate == pytest.approx(5.20793527222676, abs=1e-12)
    assert found.also["weight"] == pytest.approx(0.22350650881321352, abs=1e-12)
    theirs = (5.66285653 - 4.75301402) / 2 / stats.norm.ppf(0.975)
    # ppi_py takes labelled and unlabelled texts as two samples, each around its own mean; here they are one sample.
    everything = np.mean([*F, *U])
    between = len(F) * (np.mean(F) - everything) ** 2 + len(U) * (np.mean(U) - everything) ** 2
    between *= (found.also["weight"] / len(U)) ** 2
    expected = math.sqrt((theirs**2 + between) * 12 / 11)
    assert found.high - found.estimate == pytest.approx(expected * stats.t.ppf(0.975, 11), rel=1e-6)


def test_the_labels_alone_are_weighted_by_cluster_and_probability() -> None:
    # Clusters a (2 texts) and b (4 texts) count the same: a text of a counts 1/4, one of b 1/8; over its probability.
    found = corrected_mean(
        LabelledTexts(
            judged=[1.0] * 6,
            labels=[4.0, math.nan, 6.0, 8.0, math.nan, math.nan],
            clusters=["a", "a", "b", "b", "b", "b"],
            probabilities=[0.5, math.nan, 0.5, 0.25, math.nan, math.nan],
        )
    )
    weights = [0.25 / 0.5, 0.125 / 0.5, 0.125 / 0.25]
    expected = (4 * weights[0] + 6 * weights[1] + 8 * weights[2]) / sum(weights)
    assert found.also["alone"] == pytest.approx(expected)
    assert found.estimate == pytest.approx(expected), "a judge that says the same of all texts corrects nothing"
    assert found.also["weight"] == 0


def test_folds_use_each_label_with_the_weight_of_the_others() -> None:
    texts = _texts(np.random.default_rng(2), bases=12, each=3)
    labels, judged, clusters = map(np.asarray, (texts.labels, texts.judged, texts.clusters))
    ids = np.unique(clusters[np.isfinite(labels)])
    fold_of = dict(zip(ids, np.random.default_rng(0).permutation(len(ids)) % 3, strict=True))
    rectified = []
    for text in np.flatnonzero(np.isfinite(labels)):
        others = [i for i in np.flatnonzero(np.isfinite(labels)) if fold_of[clusters[i]] != fold_of[clusters[text]]]
        slope = np.cov(labels[others], judged[others], ddof=0)[0, 1] / np.var(judged, ddof=1)
        most = len(judged) / np.isnan(labels).sum()
        rectified.append(labels[text] - min(max(slope, 0), most) * (judged[text] - judged.mean()))
    assert corrected_mean(texts, folds=3).estimate == pytest.approx(np.mean(rectified))


def test_the_error_sums_over_clusters_before_it_squares() -> None:
    """Whatever the weight, the error is that of Taylor's expansion: what the estimate changes by without a cluster."""
    texts = _texts(np.random.default_rng(3), bases=200, each=3)
    found = corrected_mean(texts, folds=1)
    labels, judged, clusters = map(np.asarray, (texts.labels, texts.judged, texts.clusters))
    left_out = []
    for cluster in range(200):
        kept = clusters != cluster
        part = LabelledTexts(judged=judged[kept], labels=labels[kept], clusters=clusters[kept])
        left_out.append(corrected_mean(part, folds=1).estimate)
    jackknife = math.sqrt(199 / 200 * np.sum((np.array(left_out) - np.mean(left_out)) ** 2))
    assert found.standard_error == pytest.approx(jackknife, rel=0.03)


def test_no_interval_below_ten_labelled_clusters() -> None:
    place = np.arange(120)
    nine, ten = (
        LabelledTexts(judged=place % 5, labels=np.where(place < labelled, place % 7, np.nan), clusters=place // 4)
        for labelled in (36, 37)
    )
    assert corrected_mean(nine).clusters == 9
    assert math.isnan(corrected_mean(nine).low)
    assert math.isnan(corrected_mean(nine).also["alone_low"])
    assert math.isfinite(corrected_mean(nine).estimate)
    assert math.isfinite(corrected_mean(ten).low)
    assert math.isnan(corrected_difference(ten, nine).low), "the arm with fewer decides"


def test_the_labels_for_a_width_are_the_fewest() -> None:
    texts = _texts(np.random.default_rng(5), share=0.3)
    found, width = corrected_mean(texts), width_by_labels(texts)
    assert width(found.n) == pytest.approx(_width(found)), "as many as there are give the interval that there is"
    assert [math.isinf(width(labels)) for labels in (10, 11)] == [True, False], "fewer than ten clusters have one"
    wanted = 0.9 * _width(found)
    needed = labels_for(wanted, width, 200)
    assert needed is not None
    assert needed > found.n
    assert width(needed) <= wanted < width(needed - 1)
    assert labels_for(width(200), width, 200) == 200, "all of them"
    assert labels_for(0.5 * width(200), width, 200) is None, "only more bases would do"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"labels": [math.nan] * 32}, "no text has a label"),
        ({"judged": [math.nan] * 32}, "score from the judge"),
        ({"probabilities": [0.0] * 32}, "probability above 0"),
        ({"labels": [1.0]}, "different lengths"),
    ],
)
def test_what_cannot_be_corrected_is_refused(changed: dict[str, list[float]], message: str) -> None:
    columns = {name: getattr(SINGLE, name) for name in ("judged", "labels", "clusters", "probabilities")}
    with pytest.raises(ValueError, match=message):
        corrected_mean(LabelledTexts(**{**columns, **changed}))


BASES = 20


def texts(
    arms: Sequence[tuple[str, ...]],
    *,
    metric: str = "toxicity",
    same_texts: bool = False,
) -> JudgedTexts:
    """What a judge and people say of three texts per base and arm, half of them labelled; people like later arms."""
    rng = np.random.default_rng(5)
    judged, labels, drawn = [], [], []
    for place, parts in enumerate(arms):
        for base in range(BASES):
            for number in range(3):
                text = f"{base}-{number}" if same_texts else f"{place}-{base}-{number}"
                person = float(rng.normal(place, 1)) if metric != "preferred" else float(rng.integers(0, 2))
                score = person + rng.normal(0, 0.3)
                judged.append((metric, text, "", score, f"base {base}", *parts))
                shown = rng.random() < 0.5
                drawn.append((1, f"unit {text}", text, 0.5, len(labels) if shown else None))
                if shown:
                    labels.append((1, f"unit {text}", text, "Ada", "", metric, person, None, 0.5, len(labels), False))
    columns = ["draw", "unit", "text_id", "rater", "subject", "question", "value", "judge_value", "probability"]
    columns.append("position")
    facets = ("method", "model")[: len(arms[0])]
    return JudgedTexts(
        judged=pd.DataFrame(judged, columns=["metric", "text_id", "subject", "judged", "cluster", *facets]),
        labels=pd.DataFrame(labels, columns=[*columns, "simulated"]).astype({"judge_value": float}),
        drawn=pd.DataFrame(drawn, columns=["draw", "unit", "text_id", "probability", "position"]),
        arms=facets,
        cluster="base",
    )


def names(lines: Sequence[Line]) -> list[str]:
    return [line.label for line in lines]


def test_methods_are_compared_with_the_baseline_where_there_is_one() -> None:
    assert names(corrected_lines(texts([("default",), ("loop",), ("hints",)]))) == [
        "loop − default", "hints − default", "default", "loop", "hints"
    ]  # fmt: skip
    assert names(corrected_lines(texts([("no flaw",), ("figure",)]))) == ["figure − no flaw", "no flaw", "figure"]
    same = corrected_lines(texts([("judge a",), ("judge b",)], same_texts=True))
    assert names(same) == ["judge a", "judge b"], "people could see no difference between two judges of the same texts"


def test_p_is_corrected_over_the_differences_of_a_metric() -> None:
    lines = [line for line in corrected_lines(texts([("default",), ("loop",), ("hints",)])) if line.about["second"]]
    first, second = (line.p for line in lines)
    assert second < first < 1e-3, "people like each arm a point better than the one before"
    assert [line.p_adjusted for line in lines] == pytest.approx([first, 2 * second])
    assert {line.verdict for line in lines} == {DIFFERENT}


def test_a_difference_needs_raters_who_labelled_both_arms() -> None:
    """One rater an arm: which of them is stricter is not known. The means stand, about these raters."""
    both = texts([("default",), ("loop",)])
    labels = both.labels.assign(rater=both.labels["text_id"].str[0])
    apart = replace(both, labels=labels.assign(position=labels.groupby("rater").cumcount()))
    difference, *means = corrected_lines(apart)
    assert (difference.note, difference.n, difference.p != difference.p) == ("nobody labelled texts of both", 0, True)
    section = corrected_section([difference, *means], apart)
    assert section.forests[0].question == "What score for toxicity would these raters give?"
    assert section.words[0].startswith("Toxicity, default:")
