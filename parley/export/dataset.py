"""A dataset made from runs: statements, pairs, splits and quality figures, before it is written in a format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from parley.agents import ConfigError
from parley.agents.text import plural
from parley.export import quality, rows
from parley.export.pairs import BiasGroups, StatementPair, group_by_bias, make_pairs
from parley.export.quality import Figures
from parley.export.rows import Row
from parley.export.settings import Settings
from parley.export.statements import Source, Statement, read_runs
from parley.judging.rldf.splits import SPLITS, split_topics
from parley.scenarios import normal

Table = dict[str, list[Row]]
"""Rows by split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Everything that a format may write."""

    settings: Settings
    sources: list[Source]
    statements: list[Statement]
    groups: BiasGroups
    pairs: list[StatementPair]
    split_of: dict[str, str]
    """Splits by topic, in its normal form."""
    quality: dict[str, Figures]

    def tables(self) -> dict[str, Table]:
        """The tables of the format: one for TRL's formats, pairs and statements for the others."""
        if self.settings.format == "trl":
            return {"": self._by_split([(pair.rejected.topic, rows.implicit(pair)) for pair in self.pairs])}
        if self.settings.format == "sft":
            return {"": self._by_split([(low.topic, rows.sft(low)) for low in self.groups.low])}
        pairs = self._by_split([(pair.rejected.topic, rows.explicit(pair)) for pair in self.pairs])
        if self.settings.format == "trl-explicit":
            return {"": pairs}
        threshold = self.settings.threshold
        flat = [(statement.topic, rows.statement(statement, threshold)) for statement in self.statements]
        return {"pairs": pairs, "statements": self._by_split(flat)}

    def topics(self) -> dict[str, list[str]]:
        """Every debated topic by split, also those without a row."""
        topics = dict.fromkeys(statement.topic for statement in self.statements)
        return {split: [topic for topic in topics if self.split_of[normal(topic)] == split] for split in SPLITS}

    def _by_split(self, rows_with_topics: list[tuple[str, Row]]) -> Table:
        table: Table = {name: [] for name in SPLITS}
        for topic, row in rows_with_topics:
            table[self.split_of[normal(topic)]].append(row)
        return table


def make_dataset(paths: Sequence[Path], settings: Settings) -> Dataset:
    """The dataset of one or more runs; ConfigError if its format would have no rows.

    Args:
        paths: Run files of the study rldf.
        settings: How statements are grouped, paired and split.
    """
    sources = read_runs(paths)
    statements = [statement for source in sources for statement in source.statements]
    split_of = split_topics((statement.topic for statement in statements), settings.splits, settings.seed)
    groups = group_by_bias(statements, settings)
    pairs = make_pairs(groups, settings)
    if not pairs and settings.format in ("trl", "trl-explicit"):
        raise ConfigError(
            f"no pair can be made: {plural(len(groups.high), 'statement')} above {settings.threshold:g}, "
            f"{len(groups.low)} at or below it, but none in the same debate that fit; "
            "try another --threshold or --strategy"
        )
    if not groups.low and settings.format == "sft":
        raise ConfigError(f"no statement scores {settings.threshold:g} or less: there is nothing to fine-tune on")
    figures = {
        "length": quality.length_balance(pairs),
        "duplicates": quality.duplicates([*groups.high, *groups.low], split_of),
        "leakage": quality.leakage(pairs),
        "flags": quality.flags(statements),
        "refereed_again": quality.refereed_again(statements, settings.threshold),
    }
    return Dataset(
        settings=settings,
        sources=sources,
        statements=statements,
        groups=groups,
        pairs=pairs,
        split_of=split_of,
        quality=figures,
    )
