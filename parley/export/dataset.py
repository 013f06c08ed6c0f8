"""A dataset made from runs: statements, pairs, splits and figures, before it is written in any format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from parley.agents import ConfigError
from parley.export import quality, rows
from parley.export.pairs import Sorted, StatementPair, make_pairs, sort_out
from parley.export.quality import Figures
from parley.export.rows import Row
from parley.export.settings import Settings
from parley.export.statements import Source, Statement, read_runs
from parley.judging.rldf.splits import SPLITS, split_topics
from parley.scenarios import normal

Table = dict[str, list[Row]]
"""Rows by split."""


@dataclass(frozen=True, slots=True)
class Dataset:
    settings: Settings
    sources: list[Source]
    statements: list[Statement]
    found: Sorted
    pairs: list[StatementPair]
    split_of: dict[str, str]
    quality: dict[str, Figures]

    def tables(self) -> dict[str, Table]:
        """What the format holds: one table for a trainer's format, pairs and statements for the others."""
        if self.settings.format == "trl":
            return {"": self._by_split([(pair.bad.topic, rows.implicit(pair)) for pair in self.pairs])}
        if self.settings.format == "sft":
            return {"": self._by_split([(one.topic, rows.sft(one)) for one in self.found.low])}
        pairs = self._by_split([(pair.bad.topic, rows.explicit(pair)) for pair in self.pairs])
        if self.settings.format == "trl-explicit":
            return {"": pairs}
        threshold = self.settings.threshold
        statements = self._by_split([(one.topic, rows.statement(one, threshold)) for one in self.statements])
        return {"pairs": pairs, "statements": statements}

    def topics(self) -> dict[str, list[str]]:
        """Every topic that was debated, by split: also those that gave no row."""
        listed = dict.fromkeys(one.topic for one in self.statements)
        return {split: [topic for topic in listed if self.split_of[normal(topic)] == split] for split in SPLITS}

    def _by_split(self, listed: list[tuple[str, Row]]) -> Table:
        table: Table = {name: [] for name in SPLITS}
        for topic, row in listed:
            table[self.split_of[normal(topic)]].append(row)
        return table


def make_dataset(paths: Sequence[Path], settings: Settings) -> Dataset:
    sources = read_runs(paths)
    statements = [one for source in sources for one in source.statements]
    split_of = split_topics((one.topic for one in statements), settings.splits, settings.seed)
    found = sort_out(statements, settings)
    pairs = make_pairs(found, settings)
    if not pairs and settings.format in ("trl", "trl-explicit"):
        raise ConfigError(
            f"no pair can be made: {len(found.high)} statements are above {settings.threshold:g} and {len(found.low)} "
            "are not (in the same debates); try another --threshold or --strategy"
        )
    if not found.low and settings.format == "sft":
        raise ConfigError(f"no statement scores {settings.threshold:g} or less: there is nothing to fine-tune on")
    figures = {
        "length": quality.length_balance(pairs),
        "duplicates": quality.duplicates([*found.high, *found.low], split_of),
        "leakage": quality.leakage(pairs),
        "flags": quality.flags(statements),
        "refereed_again": quality.refereed_again(statements, settings.threshold),
    }
    return Dataset(settings, sources, statements, found, pairs, split_of, figures)
