"""Headlines, gaps, intervals and warnings of the other studies, where nothing was planted.

What is counted is what a reader would quote: a headline that names something, a sentence, an interval without chance.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.effects import answer
from parley.analysis.gains import gain_forest, gain_lines
from parley.analysis.page.report import ReportContext
from parley.analysis.say import headline
from parley.judging.bbq.leaderboard import answers, leaderboard_section
from parley.judging.bbq.mabrf.report import FLATTERED
from parley.judging.rldf.debates import change_section
from parley.judging.rldf.preferences.audit import WORDS, shortcuts
from parley.judging.rubric.report import severity_warning
from tests.true_sentences import cells


def bbq(rng: np.random.Generator, methods: int, categories: int) -> bool:
    """Answers to 20 templates a category, four ambiguous and four disambiguated rows each.

    Every template leans by chance one way or the other, for all methods alike and for each by itself; none leans on
    average.
    """
    rows: list[dict[str, Any]] = []
    lean = rng.normal(0, 0.5, (categories, 20))
    for method in range(methods):
        stereotyped = 1 / (1 + np.exp(-lean - rng.normal(0, 0.5, lean.shape)))
        unknown = rng.uniform(0.2, 0.6)
        for category, question, number in np.ndindex(categories, 20, 8):
            target, ambiguous = number % 2, number < 4
            person = target if rng.random() < stereotyped[category, question] else 1 - target
            label = 2 if ambiguous else (number // 2) % 2
            knows = not ambiguous and rng.random() < 0.5
            value = label if knows else 2 if rng.random() < unknown else person
            rows.append(
                {"unit": f"{category}/{question}/{number}/{method}", "metric": "answer", "value": float(value),
                 "category": f"c{category}", "example_id": 160 * category + 8 * question + number, "repeat": 0,
                 "condition": "ambig" if ambiguous else "disambig", "label": label, "target": target, "unknown": 2,
                 "names": False, "scenario": f"{category}/{question}/{number // 4}", "question": question,
                 "method": "default" if method == 0 else f"m{method}", "model": "m", "status": "ok"}
            )  # fmt: skip
    frame = answers(pd.DataFrame(rows))
    section = leaderboard_section(frame, ReportContext())
    return headline(section.forests[0]).shown > 0


def rldf(rng: np.random.Generator) -> bool:
    """Debates on twelve topics by five roles in three rounds: topics, roles, statements and trends differ by chance."""
    topics, roles, drift = rng.normal(0, 1.5, 12), rng.normal(0, 1, 5), rng.normal(0, 0.6, (12, 5))
    rows = [
        {"unit": f"t{topic}", "topic": f"t{topic}", "judge": "Referee", "role": "referee", "metric": "bias",
         "status": "ok", "round": number + 1, "subject": f"r{role}",
         "value": 5 + topics[topic] + roles[role] + number * drift[topic, role] + rng.normal(0, 1)}
        for topic, role, number in np.ndindex(12, 5, 3)
    ]  # fmt: skip
    section = change_section({"a.sqlite": pd.DataFrame(rows)})
    return headline(section.forests[0]).shown > 0


def gains(rng: np.random.Generator) -> bool:
    """A loop keeps one of three drafts of no better texts, the one that its noisy scorer finds best."""
    size, cluster = 120, np.repeat(np.arange(30), 4)
    drafts = 50 + rng.normal(0, 5, 30)[cluster] + rng.normal(0, 3, (3, size))
    inside, outside = drafts + rng.normal(0, 15, (3, size)), 50 + rng.normal(0, 15, (3, size))
    last = inside.argmin(axis=0), np.arange(size)
    seen = {"inside0": inside[0], "inside1": inside[last], "outside0": outside[0], "outside1": outside[last]}
    items = pd.DataFrame(seen).assign(cluster=cluster, system="loop", outside="another scorer")
    return headline(gain_forest(gain_lines(items), "toxicity", "points")).shown > 0


def judged_again(rng: np.random.Generator) -> bool:
    """40 templates of three chains, each the last and not the best of its loop, scored twice by one noisy judge."""
    template = np.repeat(np.arange(40), 3)
    truth = 4 + rng.normal(0, 1, 40)[template]
    bias1, again = (np.clip(np.round(truth + rng.normal(0, 1.5, len(template))), 1, 10) for _ in range(2))
    frame = pd.DataFrame({"template": template, "rise": again - bias1}).assign(model="m", method="mabrf")
    return any(line.shown for line in answer(FLATTERED, frame))


def audit(rng: np.random.Generator) -> bool:
    """240 pairs of random texts on 40 topics, of which a coin chose one; the interval of one predictor."""
    words = [f"word{n}" for n in range(80)]
    rows = []
    for topic in np.repeat(np.arange(40), 6):
        chosen, rejected = (
            " ".join(rng.choice(words, size)) + rng.choice([".", "?", "!"]) for size in rng.integers(20, 70, 2)
        )
        rounds, speakers = rng.permutation(5)[:2] + 1, rng.permutation(["Ada", "Ben", "Cem"])[:2]
        rows.append(
            {"topic": f"t{topic}", "chosen": chosen, "rejected": rejected, "round_chosen": rounds[0],
             "round_rejected": rounds[1], "speaker_chosen": speakers[0], "speaker_rejected": speakers[1]}
        )  # fmt: skip
    pairs = pd.DataFrame(rows)
    name = rng.choice(["round", "speaker", "length", "style", WORDS])
    line = next(line for line in shortcuts(pairs, seed=int(rng.integers(2**31))) if line.label == name)
    return line.low > 0.5 or line.high < 0.5


def rubric(rng: np.random.Generator, *, topics: bool) -> bool:
    """Twelve prompts of five texts, each prompt with its own level of BS and of CE."""
    prompt, severity, quality = np.repeat(np.arange(12), 5), rng.normal(0, 2, 12), rng.normal(0, 2, 12)
    rows = [
        {"item": f"i{n}", "group": "", "model": "m", "judge": "J", "metric": metric, "status": "ok"}
        | {"value": 5 + levels[prompt[n]] + rng.normal()}
        | ({"topic": f"p{prompt[n]}"} if topics else {})
        for n in range(60)
        for metric, levels in (("BS", severity), ("CE", quality))
    ]
    return bool(severity_warning(pd.DataFrame(rows)))


BBQ = "BBQ's headline names a bias"
CELLS = [
    *cells(BBQ, "no bias, 7 methods × 2 contexts", partial(bbq, methods=7, categories=3), limit=0.06, before="44%"),
    *cells(BBQ, "no bias, one method, 9 categories", partial(bbq, methods=1, categories=9), limit=0.06, before="58%"),
    *cells("RLDF's headline: debating changes the bias score", "no change, 5 roles", rldf, limit=0.06, before="18%"),
    *cells(
        "an outside measure finds that the loop changes the texts",
        "only the loop's own, noisy scorer does",
        gains,
        limit=0.06,
    ),
    *cells(
        "a chain's score is too low because it was selected",
        "the last chain was kept, whatever its score",
        judged_again,
        limit=0.06,
    ),
    *cells(
        "audit: 95% interval of an accuracy on held-out topics",
        "chosen by a coin, 40 topics × 6 pairs",
        audit,
        limit=0.06,
        before="17%",
    ),
    *cells(
        "judges may give BS as a score of quality",
        "no relation, 12 prompts × 5 texts, topics {words}",
        rubric,
        {"topics": True, "words": "known"},
        {"topics": False, "words": "not known", "before": "11%"},
        limit=0.06,
    ),
]
