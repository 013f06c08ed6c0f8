"""The rows of each format: TRL's preference rows (implicit or explicit prompt), TRL's SFT rows, and statements.

The prompt of a debate has the topic and no role: with a role, a reward model would learn who speaks instead of what is
said.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from parley.reports.export.pairs import StatementPair
from parley.reports.export.settings import Settings
from parley.reports.export.statements import Statement

Row = dict[str, Any]


def _user(statement: Statement) -> Row:
    return {"role": "user", "content": statement.prompt}


def _assistant(statement: Statement) -> Row:
    return {"role": "assistant", "content": statement.text}


def implicit(pair: StatementPair) -> Row:
    """TRL's implicit prompt: it is the beginning of both sides. For RewardTrainer."""
    user = _user(pair.rejected)
    return {
        "id": pair.id,
        "chosen": [user, _assistant(pair.chosen)],
        "rejected": [user, _assistant(pair.rejected)],
        **_scores(pair),
    }


def kto(statement: Statement, *, label: bool) -> Row:
    """TRL's unpaired preference: prompt, completion, and whether the completion is desirable. For KTOTrainer."""
    return {**sft(statement), "label": label}


def explicit(pair: StatementPair) -> Row:
    """TRL's explicit prompt: a column of its own. For DPO, RLOO, GRPO, and RewardTrainer too."""
    return {
        "id": pair.id,
        "prompt": [_user(pair.rejected)],
        "chosen": [_assistant(pair.chosen)],
        "rejected": [_assistant(pair.rejected)],
        **_scores(pair),
    }


def _scores(pair: StatementPair) -> Row:
    chosen, rejected = pair.chosen, pair.rejected
    return {
        "margin": None if chosen.score is None or rejected.score is None else abs(rejected.score - chosen.score),
        "score_chosen": chosen.score,
        "score_rejected": rejected.score,
        "meta": {
            "bias": rejected.bias,
            "topic": rejected.topic,
            "topic_id": rejected.topic_id,
            "shares": pair.shares,
            "confirmed": pair.confirmed,
            "blind_chosen": chosen.score_again,
            "blind_rejected": rejected.score_again,
            "speaker_chosen": chosen.speaker,
            "speaker_rejected": rejected.speaker,
            "round_chosen": chosen.round,
            "round_rejected": rejected.round,
            "model_chosen": chosen.model,
            "model_rejected": rejected.model,
            "mode": rejected.mode,
            "run": rejected.run,
            "run_id": rejected.run_id,
        },
    }


def sft(low: Statement) -> Row:
    """TRL's prompt and completion, of a low-bias statement."""
    return {
        "id": low.id,
        "prompt": [_user(low)],
        "completion": [_assistant(low)],
        "score": low.score,
        "score_again": low.score_again,
        "meta": {
            key: getattr(low, key)
            for key in ("bias", "topic", "topic_id", "speaker", "round", "model", "mode", "run", "run_id")
        },
    }


def statement(source: Statement, settings: Settings) -> Row:
    """All columns of a statement; `side` is high (rejected) or low (chosen), or None without a score."""
    row = asdict(source)
    row["flags"] = list(source.flags)
    del row["others"]
    row["side"] = None if source.score is None else "high" if settings.is_worse(source.score) else "low"
    return row
