"""The shapes of rows: TRL's preference rows (prompt inside or apart), TRL's SFT rows, and statements as they are.

The prompt is the topic alone, and names no role: else a reward model would learn who is asked, not what is said.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from parley.export.pairs import StatementPair
from parley.export.statements import Statement
from parley.judging import Prompt

Row = dict[str, Any]
NEUTRAL = Prompt.load("rldf/neutral")


def _user(topic: str) -> Row:
    return {"role": "user", "content": NEUTRAL(topic=topic)}


def _assistant(one: Statement) -> Row:
    return {"role": "assistant", "content": one.text}


def implicit(pair: StatementPair) -> Row:
    """The prompt is the beginning of both sides, as TRL's RewardTrainer takes it."""
    user = _user(pair.bad.topic)
    return {
        "id": pair.id,
        "chosen": [user, _assistant(pair.good)],
        "rejected": [user, _assistant(pair.bad)],
        **_scores(pair),
    }


def explicit(pair: StatementPair) -> Row:
    """The prompt apart: for DPO, RLOO, GRPO, and Reward too."""
    return {
        "id": pair.id,
        "prompt": [_user(pair.bad.topic)],
        "chosen": [_assistant(pair.good)],
        "rejected": [_assistant(pair.bad)],
        **_scores(pair),
    }


def _scores(pair: StatementPair) -> Row:
    good, bad = pair.good, pair.bad
    return {
        "score_chosen": good.score,
        "score_rejected": bad.score,
        "meta": {
            "bias": bad.bias,
            "topic": bad.topic,
            "topic_id": bad.topic_id,
            "shares": pair.shares,
            "speaker_chosen": good.speaker,
            "speaker_rejected": bad.speaker,
            "round_chosen": good.round,
            "round_rejected": bad.round,
            "model_chosen": good.model,
            "model_rejected": bad.model,
            "mode": bad.mode,
            "run": bad.run,
            "run_id": bad.run_id,
        },
    }


def sft(one: Statement) -> Row:
    return {
        "id": one.id,
        "prompt": [_user(one.topic)],
        "completion": [_assistant(one)],
        "score": one.score,
        "meta": {
            key: getattr(one, key)
            for key in ("bias", "topic", "topic_id", "speaker", "round", "model", "mode", "run", "run_id")
        },
    }


def statement(one: Statement, threshold: float) -> Row:
    """Flat, with everything; `side` is high or low, or nothing where there is no score."""
    row = asdict(one)
    row["flags"] = list(one.flags)
    del row["others"]
    row["side"] = None if one.score is None else "high" if one.score > threshold else "low"
    return row
