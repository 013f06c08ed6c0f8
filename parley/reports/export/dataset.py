"""A dataset made from runs: statements, pairs, splits and quality figures, and the rows of each format.

The prompt of a debate has the topic but no role, so that a reward model learns from content rather than from the
speaker.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parley.agents import ConfigError
from parley.base.text import plural
from parley.judging.rldf.statements import SPLITS, split_topics
from parley.reports.export import quality
from parley.reports.export.pairs import BiasGroups, StatementPair, group_by_bias, is_confirmed, make_pairs, passing
from parley.reports.export.quality import Figures, audited, confirmation
from parley.reports.export.settings import Settings
from parley.reports.export.sources import Source, read_runs
from parley.reports.export.statements import FLAGS, Statement
from parley.scenarios import normal

Row = dict[str, Any]
Table = dict[str, list[Row]]
"""Rows by split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """The data for all formats."""

    settings: Settings
    sources: list[Source]
    statements: list[Statement]
    groups: BiasGroups
    pairs: list[StatementPair]
    split_of: dict[str, str]
    """Splits by topic, in its normal form."""
    quality: dict[str, Figures]
    confirmation: dict[str, int]
    """The number of pairs that a blind referee confirmed, did not confirm, or was not asked about."""
    audit: dict[str, Any]
    """Sentences, and a table of what predicts which text was chosen."""
    instructions: str
    """The writers' instructions."""

    @property
    def study(self) -> str:
        """The study of the runs."""
        return str(self.sources[0].info["study"])

    @property
    def refereed(self) -> bool:
        """Whether these are debates with the referee's scores."""
        return self.settings.refereed(self.study)

    @property
    def paired(self) -> bool:
        """Whether its rows are pairs, or made of the same texts as its pairs."""
        return self.settings.format != "sft"

    def tables(self) -> dict[str, Table]:
        """The tables of the format: one for TRL's formats, pairs and statements for the others."""
        if self.settings.format == "trl":
            return {"": self._by_split([(pair.rejected.topic, implicit_row(pair)) for pair in self.pairs])}
        if self.settings.format == "sft":
            return {"": self._by_split([(low.topic, sft_row(low)) for low in self.confirmed(self.groups.low)])}
        if self.settings.format == "kto":
            labelled = [(low, True) for low in self.groups.low] + [(high, False) for high in self.groups.high]
            kept = {statement.id for statement in self.confirmed([statement for statement, _ in labelled])}
            return {
                "": self._by_split(
                    [(one.topic, {**sft_row(one), "label": label}) for one, label in labelled if one.id in kept]
                )
            }
        pairs = self._by_split([(pair.rejected.topic, explicit_row(pair)) for pair in self.pairs])
        if self.settings.format == "trl-explicit":
            return {"": pairs}
        flat = [(statement.topic, statement_row(statement, self.settings)) for statement in self.statements]
        return {"pairs": pairs, "statements": _without_shared_texts(self._by_split(flat))}

    def confirmed(self, statements: list[Statement]) -> list[Statement]:
        """The statements that pass the setting `unconfirmed`."""
        return passing(statements, lambda one: is_confirmed(one, self.settings), self.settings)

    def topics(self) -> dict[str, list[str]]:
        """Every debated topic by split, including those without a row."""
        topics = dict.fromkeys(statement.topic for statement in self.statements)
        return {split: [topic for topic in topics if self.split_of[normal(topic)] == split] for split in SPLITS}

    def _by_split(self, rows_with_topics: list[tuple[str, Row]]) -> Table:
        table: Table = {name: [] for name in SPLITS}
        for topic, row in rows_with_topics:
            table[self.split_of[normal(topic)]].append(row)
        return table


def _without_shared_texts(table: Table) -> Table:
    """The rows whose text is not in an earlier split: statements on different topics may be the same."""
    seen: set[str] = set()
    kept: Table = {}
    for split, listed in table.items():
        kept[split] = [row for row in listed if normal(row["text"]) not in seen]
        seen |= {normal(row["text"]) for row in listed}
    return kept


def make_dataset(paths: Sequence[Path], settings: Settings) -> Dataset:
    """The dataset of one or more runs; ConfigError if its format would have no rows.

    Args:
        paths: Run files of one study.
        settings: How statements are grouped, paired and split.
    """
    sources = read_runs(paths, settings)
    statements = [statement for source in sources for statement in source.statements]
    given, settings = settings.model_fields_set, settings.of_study(sources[0].info["study"])
    silent = [source.info["config"].get("design") == "silent" for source in sources]
    if all(silent) and settings.refereed(sources[0].info["study"]):
        settings = settings.of_silent_referee([one.score for one in statements if one.score is not None], given)
    split_of = split_topics((statement.topic for statement in statements), settings.splits, settings.seed)
    groups = group_by_bias(statements, settings)
    worse = "above" if settings.better == "low" else "below"
    made = make_pairs(groups, settings)
    pairs = passing(made, lambda pair: pair.confirmed, settings)
    if made and not pairs and settings.format in ("trl", "trl-explicit"):
        none = "a blind second referee confirms none of "
        if any(silent):
            none = "the wordings of a silent referee agree on none of "
        raise ConfigError(f"{none}{plural(len(made), 'pair')}; --unconfirmed keep exports them, marked")
    if not pairs and settings.format in ("trl", "trl-explicit"):
        scores = [one.score for one in (*groups.high, *groups.low) if one.score is not None]
        middle = f" ({statistics.median(scores):g} is their median)" if scores else ""
        raise ConfigError(
            f"no pair can be made: {plural(len(groups.high), 'statement')} {worse} {settings.threshold:g}, "
            f"{len(groups.low)} others, {sum(groups.left_out.values())} left out, but no two of the same debate "
            f"fit; try another --threshold{middle} or --strategy"
        )
    if not groups.low and settings.format == "sft":
        better = "less" if settings.better == "low" else "more"
        raise ConfigError(f"no statement scores {settings.threshold:g} or {better}: there is nothing to fine-tune on")
    flags = Counter(flag for statement in statements for flag in statement.flags)
    figures = {
        "length": quality.length_balance(pairs),
        "leakage": quality.leakage(pairs),
        "flags": {flag: flags[flag] for flag in FLAGS},
    }
    instructions = "\n".join(dict.fromkeys(source.instructions for source in sources))
    return Dataset(
        settings=settings,
        sources=sources,
        statements=statements,
        groups=groups,
        pairs=pairs,
        split_of=split_of,
        quality=figures,
        confirmation=confirmation(made),
        audit=audited(pairs, made, instructions, split_of),
        instructions=instructions,
    )


def _user(statement: Statement) -> Row:
    return {"role": "user", "content": statement.prompt}


def _assistant(statement: Statement) -> Row:
    return {"role": "assistant", "content": statement.text}


def implicit_row(pair: StatementPair) -> Row:
    """TRL's implicit prompt: it is the beginning of both sides. For RewardTrainer."""
    user = _user(pair.rejected)
    return {
        "id": pair.id,
        "chosen": [user, _assistant(pair.chosen)],
        "rejected": [user, _assistant(pair.rejected)],
        **_scores(pair),
    }


def explicit_row(pair: StatementPair) -> Row:
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


def sft_row(low: Statement) -> Row:
    """TRL's prompt and completion for a low-bias statement."""
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


def statement_row(source: Statement, settings: Settings) -> Row:
    """All columns of a statement; `side` is high (rejected) or low (chosen), or None without a score."""
    row = asdict(source)
    row["flags"] = list(source.flags)
    del row["others"], row["by_wording"], row["compared"]
    row["side"] = None if source.score is None else "high" if settings.is_worse(source.score) else "low"
    return row
