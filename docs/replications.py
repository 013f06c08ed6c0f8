"""`python -m docs.replications FOLDER` writes docs/replications.md and its figures from FOLDER/PAPER/*.sqlite.

FOLDER has the folders that `parley replicate PAPER --out FOLDER/PAPER` wrote. What a paper's numbers mean is written by
hand, in docs/replications.toml; every number in the tables is made here.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib import pyplot

from docs.gallery import shrink
from parley.analysis.stats.mean_test import mean_test
from parley.base.text import plural
from parley.judging.papers import paper, printed
from parley.reports.loading import LoadedRun, load_run
from parley.reports.papers import paper_report, values_of

DOCS = Path(__file__).parent
NOT_SHOWN = ("not measured", "not testable", "by construction")
INTRODUCTION = """# Four papers on an open model

Which headline claims hold on {model}? Intervals are 95%; verdicts are corrected over all testable claims of a
paper ([what they mean](papers.md)). `python -m docs.replications FOLDER` makes this page from run
files.
"""


def clock(path: Path) -> tuple[float, float, int]:
    """When a run's first unit started and its last one ended, and how many calls it made."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as run:
        first, last = run.execute("SELECT min(started_at), max(finished_at) FROM units").fetchone()
        (calls,) = run.execute("SELECT count(*) FROM calls WHERE NOT cached").fetchone()
    return first, last, calls


def table(claims: pd.DataFrame, headlines: Sequence[str], missing: str) -> Iterator[str]:
    """The headline claims that have a verdict, as Markdown, and how many others have which.

    Args:
        claims: A paper's claims.
        headlines: What the chosen claims have in their first column: "(abstract)".
        missing: Why rows are not measured.
    """
    verdict = claims["verdict"].str.partition(":")[0]
    chosen = claims["claim"].map(lambda claim: any(words in claim for words in headlines))
    decided = ~verdict.isin(NOT_SHOWN)
    yield "| headline claim | paper | ours | verdict |"
    yield "|---|---|---|---|"
    for row in claims[chosen & decided].to_dict("records"):
        said = str(row["verdict"]).partition(":")[0]
        shown = f"**{said}**" if said.startswith(("replicated", "contrary")) else said
        tested = re.sub(r" against each of .*", " against all others", row["tested"]).replace("|", "&#124;")
        yield f"| {tested} | {row['paper'] or '–'} | {row['ours']} | {shown} |"
    counts = verdict[~chosen & decided].value_counts()
    others = ", ".join(f"{count} {name}" for name, count in counts.items())
    unmeasured = int((verdict == "not measured").sum())
    yield "\n" + " ".join(
        filter(
            None,
            (
                f"Of the paper's other rows {others}." if others else "",
                f"Not measured: {plural(unmeasured, 'row')}, {missing}." if unmeasured else "",
            ),
        )
    )


def figure(name: str, values: pd.DataFrame, chosen: Mapping[str, Any]) -> str:
    """A plot of one measure by set and method, with the paper's values where it prints some; returns its link."""
    rows = values[(values["measure"] == chosen["measure"]) & values["method"].isin(chosen["methods"])]
    rows = rows[rows["set"].isin(chosen["sets"])]
    levels = rows.groupby(["set", "method", "cluster"], observed=True)["value"].mean()
    theirs = printed(name)
    theirs = theirs[theirs["measure"] == chosen["measure"]]
    shown = [(group, method) for group in chosen["sets"] for method in chosen["methods"]]
    drawing, axes = pyplot.subplots(figsize=(7, 0.9 + 0.28 * len(shown)))
    for place, (group, method) in enumerate(shown):
        test = mean_test(levels[group, method].to_numpy())
        axes.plot([test.low, test.high], [place, place], color="#1f5fa8", linewidth=2)
        axes.plot(test.estimate, place, "o", color="#1f5fa8", label="_" * (place > 0) + "ours, 95% interval")
        marks = theirs[(theirs["set"] == group) & (theirs["method"] == method)]["value"]
        label = "_" * (place > 0) + "paper, its models"
        axes.plot(marks, [place] * len(marks), "d", color="#c0504d", markerfacecolor="none", label=label)
    labels = [f"{group}: {method}" for group, method in shown]
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlabel(chosen["axis"])
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    path = DOCS / "figures" / f"replication-{name}.png"
    drawing.savefig(path, dpi=110, bbox_inches="tight")
    pyplot.close(drawing)
    shrink(path)
    return f"![{chosen['axis']} by method, ours and the paper's](figures/{path.name})"


def section(name: str, paths: Sequence[Path], words: Mapping[str, Any]) -> Iterator[str]:
    """A paper's claims, figure and explanation."""
    runs: list[LoadedRun] = [load_run(path) for path in paths]
    claims = next(each for each in paper_report(name, runs).tables if each.name == "claims").frame
    yield f"\n## {paper(name).title}\n"
    yield words["says"].strip() + "\n"
    yield from table(claims, words["headlines"], words["missing"].strip())
    if "figure" in words:
        yield "\n" + figure(name, values_of(runs), words["figure"])
    clocks = [clock(path) for path in paths]
    calls = sum(each[2] for each in clocks)
    hours = sum(last - first for first, last, _ in clocks) / 3600
    yield f"\n```sh\n{words['command'].strip()}\n```\n"
    yield f"{calls:,} calls; {60 * hours:.0f} minutes if its runs had run one after another."


def main() -> None:
    matplotlib.use("agg")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    words = tomllib.loads((DOCS / "replications.toml").read_text("utf-8"))
    lines = [INTRODUCTION.format(model=words["model"])]
    for name in words["papers"]:
        paths = sorted((folder / name).glob("*.sqlite"))
        lines += section(name, paths, words[name])
    newest = max(clock(path)[1] for path in folder.glob("*/*.sqlite"))
    lines.append(f"\nThe runs ended on {datetime.fromtimestamp(newest, UTC):%-d %B %Y}. {words['end'].strip()}")
    page = DOCS / "replications.md"
    page.write_text("\n".join(lines) + "\n", "utf-8")
    print(f"{page}: {len(page.read_text('utf-8').split()):,} words")


if __name__ == "__main__":
    main()
