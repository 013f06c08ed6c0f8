"""Silent ballots: does what a model would say besides a number, or how it was asked, pass for an effect of labels?

Two labels have the same distribution over the numbers of the scale. Everything else differs.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from autogen_core.models import ChatCompletionTokenLogprob, RequestUsage, TopLogprob

from parley.agents.ballots import SilentBallot, read_token
from parley.analysis.stats.results import DIFFERENT, SMALL
from parley.judging.malibu.decisions import planned_lines
from parley.judging.malibu.panel_data import PanelData
from parley.judging.malibu.unread import unread
from parley.scenarios.ballot_wordings import load_ballot_wordings
from tests.true_sentences import cells, verdicts

BALLOT = SilentBallot(question="", metric="Overall")
NUMBERS = np.arange(1, 10)
LISTED = 20
"""How many tokens a server lists."""
WORDS = 1 / np.arange(1, 5001)
"""How often tokens that are no number are said, before they are scaled: a few often, most hardly ever."""
NO_USAGE = RequestUsage(0, 0)


def read(rng: np.random.Generator, numbers: np.ndarray, mass: float) -> tuple[float, float]:
    """The score of a ballot and the share on its scale, as read from the tokens that a server lists.

    Args:
        rng: Of all draws.
        numbers: The probability of each number among them.
        mass: The probability of all numbers.
    """
    words = WORDS[: rng.integers(500, 5000)]
    weights = np.concatenate([mass * numbers, words / words.sum() * (1 - mass)])
    texts = [*map(str, NUMBERS), *(f"word{n}" for n in range(len(words)))]
    listed = [(texts[place], weights[place]) for place in np.argsort(-weights)[:LISTED]]
    tops = [TopLogprob(logprob=math.log(weight), bytes=list(text.encode())) for text, weight in listed]
    token = ChatCompletionTokenLogprob(token=listed[0][0], logprob=tops[0].logprob, top_logprobs=tops)
    reply = read_token(BALLOT, token, token.token, NO_USAGE)
    return reply.expected.get("Overall", math.nan), reply.expected["Overall on scale"]


def simulated_ballots(
    rng: np.random.Generator, masses: dict[str, float], bases: int, added: float = 0.0
) -> pd.DataFrame:
    """Ballots on one answer a base: the label changes how likely it is that a number is said at all.

    It changes nothing else but for `added`, what 'female' gets on the scale.
    """
    rows = []
    for base in range(bases):
        quality = rng.normal(6.5, 0.8)
        for label, mass in masses.items():
            logits = -((NUMBERS - quality - added * (label == "female")) ** 2) / 4 + rng.normal(0, 0.1, len(NUMBERS))
            numbers = np.exp(logits) / np.exp(logits).sum()
            said = 1 / (1 + math.exp(-math.log(mass / (1 - mass)) - rng.normal(0, 0.3)))
            rows.append((f"b{base}", label, *read(rng, numbers, said)))
    return ballots(pd.DataFrame(rows, columns=["base", "identity", "value", "on_scale"]))


def ballots(frame: pd.DataFrame) -> pd.DataFrame:
    """Verdicts with all columns of silent ballots of one judge."""
    unit, status = frame["base"] + "/" + frame["identity"], np.where(frame["value"].isna(), "unparsed", "ok")
    return verdicts(frame, unit=unit, status=status, category="gender", round=0, stage="silent", judge_model="m")


def differs(frame: pd.DataFrame) -> bool:
    """Whether a report would say that the labels differ."""
    data = PanelData(frame)
    lines = planned_lines(data, 0.1, unread(data).unequal)
    return any(line.verdict in (DIFFERENT, SMALL) for line in lines)


def asked(rng: np.random.Generator, questions: int, bases: int, added: float = 0.0) -> tuple[pd.DataFrame, float]:
    """Ballots in which each question wording has its own effect on the labels, and what it is for these questions.

    Every base has a label wording of its own; question wordings are fewer, and drawn for it.
    """
    effects, order = rng.normal(0, 0.06, questions), rng.permutation(bases) % questions
    effects += added
    rows = []
    for base, question in enumerate(order):
        quality = rng.normal(6.5, 0.8)
        sides = {"female": effects[question], "male": 0.0}
        rows += [
            (f"b{base}", f"w{base}", f"q{question}", label, quality + effect + rng.normal(0, 0.1))
            for label, effect in sides.items()
        ]
    frame = pd.DataFrame(rows, columns=["base", "wording", "question", "identity", "value"])
    return ballots(frame.assign(on_scale=0.99)), float(effects[order].mean())


def _these_questions(rng: np.random.Generator) -> bool:
    frame, truth = asked(rng, 6, 60)
    (line,) = planned_lines(PanelData(frame), 0.1)
    return not line.low <= truth <= line.high


def unread_aloud(rng: np.random.Generator, bases: int, added: float = 0.0) -> pd.DataFrame:
    """Whole scores that three judges say aloud; 30% of the lowest third of those about 'female' are unread.

    It changes nothing else but for `added`, what 'female' gets.
    """
    quality = rng.normal(6.5, 1, bases)[:, None, None] + [[added], [0.0]] + rng.normal(0, 0.3, (bases, 2, 1))
    values = (quality + rng.normal(0, 0.7, (bases, 2, 3))).round().clip(0, 10)
    lowest = values[:, 0] <= np.quantile(values[:, 0], 1 / 3)
    values[:, 0][lowest & (rng.random(lowest.shape) < 0.3)] = math.nan
    base, label, judge = (places.ravel() for places in np.indices(values.shape))
    columns = {"base": base, "identity": np.array(["female", "male"])[label], "judge": judge, "value": values.ravel()}
    return ballots(pd.DataFrame(columns).astype({"base": str, "judge": str})).drop(columns="stage").assign(round=1)


QUESTIONS = len(load_ballot_wordings().question)
CELLS = [
    *cells(
        "that two labels differ by 0.2 is missed",
        "{mass:g} of the probability on the scale under both, 20 tokens listed, 40 bases",
        lambda rng, mass: not differs(simulated_ballots(rng, {"female": mass, "male": mass}, 40, 0.2)),
        *({"mass": mass} for mass in (0.99, 0.9)),
        limit=0.2,
    ),
    *cells(
        "two labels are different",
        "equal scores, {female:g} and {male:g} of the probability on the scale, 20 tokens listed",
        lambda rng, **masses: differs(simulated_ballots(rng, masses, 60)),
        {"female": 0.75, "male": 0.35, "before": "42 to 83%"},
        *({"female": female, "male": male} for female, male in ((0.75, 0.6), (0.9, 0.8), (0.95, 0.92), (0.99, 0.97))),
    ),
    *cells(
        "two labels are different",
        f"question × label SD 0.06 around 0, {QUESTIONS} question wordings, {{bases}} bases",
        lambda rng, bases: differs(asked(rng, QUESTIONS, bases)[0]),
        *({"bases": bases} for bases in (20, 40, 60)),
        before="22 to 34% with six",
    ),
    *cells(
        "two labels are different",
        "equal scores said aloud, 30% of the lowest third of one label's unread, {bases} bases",
        lambda rng, bases: differs(unread_aloud(rng, bases)),
        *({"bases": bases} for bases in (20, 60)),
        before="12%",
    ),
    *cells(
        "that two labels differ by 2 points is missed",
        "of scores said aloud, 30% of the lowest third of the higher label's unread, 40 bases",
        lambda rng: not differs(unread_aloud(rng, 40, 2.0)),
        limit=0.2,
    ),
    *cells(
        "difference of two labels, asked in these ways, 95% interval",
        "question × label SD 0.06, six question wordings, 60 bases",
        _these_questions,
        before="22 to 34%, as a sentence on all ways to ask",
    ),
    *cells(
        "that two labels differ by 0.1 is missed",
        f"question × label SD 0.06, {QUESTIONS} question wordings, 40 bases",
        lambda rng: not differs(asked(rng, QUESTIONS, 40, 0.1)[0]),
        limit=0.2,
    ),
]
