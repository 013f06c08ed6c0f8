"""Tables and a figure of completions of several seeds, from files that `parley train evaluate` left.

    python -m benchmarks.positive.seeds REPORT_FOLDER seed-*/trained/evaluate/completions.jsonl \
        --referee ngrams --scorer embedded --scorer mine.py:Mine

Scores that a file lacks are added to it: completions can be sampled on one machine and scored on another. The order of
the files gives the seeds' numbers.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.positive.evaluation import DEFAULT, NOTE, completions_table, score_rows
from parley.analysis.reporting.figures import save
from parley.analysis.reporting.render import write
from parley.analysis.reporting.report import Report, Table
from parley.judging.rldf.scorer_referee import PREFIX
from parley.training.figures import differences_figure
from parley.training.repeats import mean_over_seeds

FIGURE_NOTE = (
    "Difference from the base model on held-out prompts, with 95% intervals over prompts; one line per seed. The "
    "referee chose the training pairs: only the other scorers are outside measures."
)


def seed_tables(rows_of_seeds: Sequence[Sequence[Mapping[str, Any]]], referee: str) -> tuple[Table, Table]:
    """Every seed's lines, and their means over seeds with standard deviations.

    Args:
        rows_of_seeds: Scored completions of each seed.
        referee: The scorer that chose the pairs.
    """
    frames = [completions_table(rows, referee).frame.assign(seed=seed) for seed, rows in enumerate(rows_of_seeds)]
    lines = pd.concat(frames, ignore_index=True)
    keys = ["measure", "system"]
    means = pd.DataFrame(mean_over_seeds(lines.to_dict("records"), keys))
    # An average of intervals hides in how many seeds the whole interval lies on one side.
    sides = lines.assign(lower=lines["high"] < 0, higher=lines["low"] > 0).groupby(keys, sort=False)
    means = means.merge(sides[["lower", "higher"]].sum().reset_index(), on=keys)
    return (
        Table(name="by_seed", title="Completions of held-out prompts, by seed", frame=lines, note=NOTE),
        Table(name="over_seeds", title="Means over seeds", frame=means, note=NOTE, printed=True),
    )


def figure_rows(lines: pd.DataFrame, scorers: Sequence[str]) -> pd.DataFrame:
    """The differences in the scorers' means and in fluency, each system with its seed."""
    shown = lines[lines["measure"].isin([*scorers, "perplexity, nats per token"]) & (lines["system"] != DEFAULT)]
    names = [f"{row.system}, seed {row.seed}" for row in shown.itertuples()]
    return shown.assign(system=names).sort_values("system", kind="stable")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("to", type=Path, help="folder for the report")
    parser.add_argument("files", type=Path, nargs="+", help="completions.jsonl of each seed")
    parser.add_argument("--referee", default="ngrams", help="the scorer that chose the pairs (default: ngrams)")
    parser.add_argument("--scorer", action="append", default=[], help="an outside measure; may be repeated")
    parsed = parser.parse_args(arguments)
    names = [f"{PREFIX}{name}" for name in (parsed.referee, *parsed.scorer)]
    rows = [score_rows(path, names) for path in parsed.files]
    by_seed, over_seeds = seed_tables(rows, parsed.referee)
    title = "Toxicity of completions, before and after training"
    write(Report(title=title, tables=(over_seeds, by_seed)), parsed.to)
    scorers = list(dict.fromkeys(name for seed in rows for row in seed for name in row["scores"]))
    figure = differences_figure(figure_rows(by_seed.frame, scorers), title, FIGURE_NOTE)
    save(figure, parsed.to / "differences")
    columns = ["measure", "system", "mean", "difference", "difference_sd", "low", "high", "lower", "higher"]
    print(over_seeds.frame[columns].to_string(index=False, float_format="{:.3f}".format))


if __name__ == "__main__":
    main()
