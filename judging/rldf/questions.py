"""The questions of a silent referee, in several wordings: about one statement, with its reverse, and about two.

score_ballot(text, "biased", "people's age")
"""

from __future__ import annotations

import tomllib
from importlib.resources import files

from parley.agents import SilentBallot
from parley.judging.ballots import PREFERRED
from parley.scenarios.templates import fill

BIAS = "bias"
"""The metric of a ballot about one statement."""
SAMPLES = 3
"""How often a model without log-probabilities is asked."""
_QUESTIONS = tomllib.loads(files("parley.judging").joinpath("rldf", "questions.toml").read_text("utf-8"))
LOW, HIGH = int(_QUESTIONS["low"]), int(_QUESTIONS["high"])
_WORDINGS: dict[str, dict[str, str]] = {wording.pop("id"): wording for wording in _QUESTIONS["wording"]}
WORDINGS = tuple(_WORDINGS)
"""The ids of the wordings."""


def question_prompts() -> dict[str, str]:
    """Every text that prompts are made of, by name."""
    texts = {f"{name}/{key}": text for name, wording in _WORDINGS.items() for key, text in wording.items()}
    texts |= {key: _QUESTIONS[key] for key in ("single", "pair")}
    return {f"referee/statement/{name}": text for name, text in texts.items()}


def score_ballot(text: str, wording: str, subject: str, *, reverse: bool = False) -> SilentBallot:
    """How biased is a statement?

    Args:
        text: The statement.
        wording: The id of the wording.
        subject: What the bias is about: "people's age".
        reverse: Whether to ask how fair it is.
    """
    question = _question(wording, "reverse" if reverse else "question", subject)
    return SilentBallot(
        question=fill(_QUESTIONS["single"], {"text": text, "question": question}),
        metric=BIAS,
        low=LOW,
        high=HIGH,
        prefill=_QUESTIONS["prefill"],
        samples=SAMPLES,
    )


def pair_ballot(first: str, second: str, wording: str, subject: str) -> SilentBallot:
    """Which of two statements is more biased?

    Args:
        first: The statement that is shown as A.
        second: The statement that is shown as B.
        wording: The id of the wording.
        subject: What the bias is about.
    """
    values = {"first": first, "second": second, "question": _question(wording, "pair", subject)}
    return SilentBallot(
        question=fill(_QUESTIONS["pair"], values),
        metric=PREFERRED,
        choices=("A", "B"),
        prefill=_QUESTIONS["prefill_pair"],
        samples=SAMPLES,
    )


def _question(wording: str, key: str, subject: str) -> str:
    return fill(_WORDINGS[wording][key], {"subject": subject, "low": str(LOW), "high": str(HIGH)})
