"""The audit of preference pairs, on pairs with a planted shortcut and on pairs without one."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from parley.analysis.stats.proportions import cluster_proportion
from parley.analysis.stats.results import Line
from parley.judging.rldf.preferences import audit
from parley.judging.rldf.preferences.features import STYLE, style, words
from parley.judging.rldf.preferences.paired_logit import fit, sign_flip_p
from parley.judging.rldf.preferences.report import preference_report

KINDS = ("none", "round", "speaker", "length", "style", "words of the instructions")
RATE = 0.74
"""How often the text with the planted property is the chosen one."""
VOCABULARY = [f"word{n}" for n in range(10, 90)]
INSTRUCTIONS = "Use word99 in every case."


def planted(kind: str, seed: int, topics: int = 40, per_topic: int = 6, rate: float = RATE) -> pd.DataFrame:
    """Pairs of random texts that differ in every property; one property says with the given rate which is chosen."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    rows = []
    for topic in np.repeat(np.arange(topics), per_topic):
        rounds = rng.permutation(5)[:2] + 1
        speakers = rng.permutation(3)[:2]
        sentences = rng.permutation(np.arange(2, 7))[:2]
        questions, instructed = rng.permutation(2), rng.permutation(2)
        texts = []
        for count, mark, is_instructed in zip(sentences, questions, instructed, strict=True):
            drawn = rng.choice(VOCABULARY, (count, 10)).tolist()
            drawn[0][0] = "word99" if is_instructed else drawn[0][0]
            texts.append(" ".join(" ".join(sentence) + ".?"[mark] for sentence in drawn))
        values = {
            "round": rounds,
            "speaker": -speakers,
            "length": -sentences,
            "style": questions,
            KINDS[-1]: instructed,
        }
        better = int(np.argmax(values.get(kind, [0, 0])))
        first = better if rng.random() < (rate if kind in values else 0.5) else 1 - better
        sides = {"chosen": first, "rejected": 1 - first}
        rows.append(
            {"topic": f"topic {topic}"}
            | {side: texts[n] for side, n in sides.items()}
            | {f"round_{side}": rounds[n] for side, n in sides.items()}
            | {f"speaker_{side}": "ABC"[speakers[n]] for side, n in sides.items()}
        )
    return pd.DataFrame(rows)


@pytest.fixture(scope="module", params=KINDS)
def audited(request: pytest.FixtureRequest) -> tuple[str, pd.DataFrame, list[Line]]:
    """What was planted, the pairs, and what the audit finds in them."""
    pairs = planted(request.param, 0)
    return request.param, pairs, audit.shortcuts(pairs, instructions=INSTRUCTIONS)


def test_a_planted_shortcut_is_found_with_its_strength_and_no_other(
    audited: tuple[str, pd.DataFrame, list[Line]],
) -> None:
    kind, pairs, lines = audited
    found = {line.label: line for line in lines}
    assert {name for name in audit.SHORTCUTS if found[name].shown} == {kind} - {"none"}
    if kind != "none":
        assert found[kind].low <= RATE <= found[kind].high
    if kind == "length":
        # Wilson's interval over topics; ten folds share what they learnt from (Nadeau and Bengio 2003): 1 + 10 · 4/36
        shorter = (pairs["chosen"].str.len() < pairs["rejected"].str.len()) * 1.0
        expected = cluster_proportion(shorter, pairs["topic"], inflation=1 + 10 * 4 / 36)
        numbers = [(line.estimate, line.low, line.high) for line in (found[kind], expected)]
        assert numbers[0] == pytest.approx(numbers[1])


def test_weights_are_those_of_logistic_regression() -> None:
    # One feature of ±1, chosen has +1 in 30 of 40: without a penalty the weight is log(30/10).
    differences = sparse.csr_array(np.repeat([[1.0], [-1.0]], [30, 10], axis=0))
    assert fit(differences, penalty=1e-9)[0] == pytest.approx(math.log(3), abs=1e-4)
    # With the penalty 1 the gradient 1·w = 30·σ(−w) − 10·σ(w) vanishes.
    w = fit(differences)[0]
    assert 30 / (1 + math.exp(w)) - 10 / (1 + math.exp(-w)) == pytest.approx(w, abs=1e-4)


def test_sign_flips_are_those_of_the_textbook() -> None:
    # Six topics with a difference of 1 each: 2 of 64 flips are as large, p = 1/32.
    p = sign_flip_p(sparse.csr_array(np.ones((6, 1))), np.arange(6), seed=0, flips=20_000)
    assert p == pytest.approx(2 / 64, abs=0.004)


def test_the_blind_referee_is_right_where_it_finds_rejected_worse() -> None:
    pairs = planted("none", 0, topics=8, per_topic=1)
    pairs["blind_chosen"] = [1, 1, 1, 5, 2, None, 1, 1]
    pairs["blind_rejected"] = [5, 5, 5, 1, 2, 9, 9, 9]
    *others, line = audit.shortcuts(pairs)
    assert line.label == audit.BLIND
    assert line.estimate == pytest.approx(5.5 / 7)
    assert line.n == 7
    assert line.p_adjusted == line.p, "a test of its own: it is no shortcut"
    assert {other.tests for other in others if other.label in audit.SHORTCUTS} <= {None, 4}


def test_what_is_not_known_is_said_and_not_assumed() -> None:
    pairs = planted("length", 0)[["topic", "chosen", "rejected"]]
    report = preference_report(pairs)
    line = next(line for line in report.words if line.startswith("Not checked"))
    assert all(name in line for name in ("round", "speaker", "words of the instructions", "blind"))
    assert report.words[0].startswith("Length alone predicts the choice in 7")
    few = preference_report(pairs.head(6))
    assert any("5 topics are needed, there are 1" in line for line in few.words)
    assert not any("topics are needed" in line for line in preference_report(pairs.head(30)).words), "there are five"


def test_style_does_not_grow_with_length() -> None:
    text = "I might go, but you never do! Why (not)? "
    once, twice = style([text, text * 2])
    assert once == pytest.approx(twice)
    measures = dict(zip(STYLE, once, strict=True))
    assert measures["exclamation marks per sentence"] == measures["question marks per sentence"] == 0.5
    assert measures["hedges per word"] == measures["absolutes per word"] == pytest.approx(1 / len(words(text)))


@pytest.mark.parametrize(("agreed", "warning"), [(0.95, ""), (0.65, "That is weak"), (0.5, "no better than chance")])
def test_a_weak_blind_referee_gives_a_warning(agreed: float, warning: str) -> None:
    pairs = planted("none", 0, topics=20)
    agrees = np.random.default_rng(0).permutation(len(pairs)) < agreed * len(pairs)
    pairs["blind_chosen"], pairs["blind_rejected"] = np.where(agrees, 1, 5), np.where(agrees, 5, 1)
    line = next(line for line in preference_report(pairs).words if "blind referee agrees" in line)
    assert ("noise" in line) == bool(warning)
    assert warning in line
