"""The dataset card: what the dataset has, how it was made from which runs, and its known limits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import yaml

from parley import __version__
from parley.agents.providers import provider_of
from parley.base.text import plural
from parley.reports.cautions import judging_cautions
from parley.reports.export.dataset import Dataset, Table
from parley.reports.export.quality import confirmation_line
from parley.reports.export.sources import CHECKED_FLAGS
from parley.reports.export.statements import NEUTRAL, Statement
from parley.scenarios import normal

LIMITS = """\
- Scores are a language model's judgement of bias, not people's. A score of 0 does not mean that a text is free of bias.
- Debaters play roles from labels of a few words. Their statements show what the model associates with the label, and
  are not evidence of what such people think.
- Statements answer each other: one may refer to another speaker's statement, which is not part of the pair.
- The statements contain stereotypes. They are included so that a model can learn to prefer texts without them.
- Topics are disjoint between splits; roles, prompts and models are the same in all of them."""


OTHER_LIMITS = """\
- Scores are those of the judges or raters named here; a good score does not mean that a text is free of bias.
- Texts of one conversation answer each other: a revision may refer to a draft that is not part of the row.
- The texts may contain stereotypes or insults, so that a model can learn to prefer texts without them.
- Prompts are disjoint between splits; models and instructions are the same in all of them."""
RLDF = (
    "multi-role debates as in RLDF (Cheng et al., *LLM Alignment via Reinforcement Learning from Multi-role Debates as "
    "Feedback*): people with different backgrounds debate a topic, and a referee scores the bias of each statement "
    "from 0 (none) to 10 (extreme) after every round."
)

SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (math.inf, "1M<n<10M"),
)
"""The hub's size categories, each with the number of rows that it ends below."""


def card(dataset: Dataset, tables: dict[str, Table]) -> str:
    """The card as the hub reads it: a YAML header, then Markdown.

    Args:
        dataset: The dataset to describe.
        tables: Its tables in the exported format, for the header.
    """
    return (
        "---\n"
        + yaml.safe_dump(_head(dataset, tables), sort_keys=False, allow_unicode=True)
        + "---\n\n"
        + _body(dataset)
    )


def _head(dataset: Dataset, tables: dict[str, Table]) -> dict[str, Any]:
    ending = "parquet" if dataset.settings.format in ("parquet", "hub") else "jsonl"
    rows = sum(map(len, next(iter(tables.values())).values()))
    head: dict[str, Any] = {
        "license": dataset.settings.licence,
        "language": [dataset.settings.language],
        "task_categories": ["text-generation"]
        if dataset.settings.format == "sft"
        else ["reinforcement-learning", "text-generation"],
        "size_categories": [next(name for most, name in SIZES if rows < most)],
        "pretty_name": _title(dataset),
        "tags": ["parley", dataset.study, "trl", "bias", "preference", "synthetic"],
    }
    first = next((name for name, table in tables.items() if any(table.values())), "")
    if dataset.settings.format != "datasets":
        head["configs"] = [
            {
                "config_name": name or "default",
                **({"default": True} if name == first else {}),
                "data_files": [
                    {"split": split, "path": f"{name + '/' if name else ''}{split}.{ending}"}
                    for split, rows in table.items()
                    if rows
                ],
            }
            for name, table in tables.items()
            if any(table.values())
        ]
    return head


def _title(dataset: Dataset) -> str:
    listed = ", ".join(_biases(dataset))
    return f"RLDF debates: {listed}" if dataset.refereed else f"Conversations of {dataset.study}: {listed}"


def _origin(dataset: Dataset) -> str:
    if dataset.refereed:
        return RLDF
    by = f"the judges' scores (`{dataset.settings.metric}`)"
    return f"runs of the study `{dataset.study}`: what its debaters or generators wrote, by {by}."


def _biases(dataset: Dataset) -> list[str]:
    return list(dict.fromkeys(statement.bias for statement in dataset.statements))


def _body(dataset: Dataset) -> str:
    settings, biases = dataset.settings, _biases(dataset)
    scores = [statement.score for statement in dataset.statements if statement.score is not None]
    worse = "above" if settings.better == "low" else "below"
    left_out = sorted(dataset.groups.left_out.items())
    parts = [
        f"# {_title(dataset)}",
        *(f"> **{line}**" for line in [*referee_lines(dataset), *cautions(dataset)]),
        f"Made with Parley {__version__} from {_origin(dataset)} A pair is a text with a better score (chosen) and one "
        f"with a worse score (rejected) of the same conversation. Scores {worse} {settings.threshold:g} are called "
        f"{'high bias, the others low' if dataset.refereed else 'worse, the others better'}.",
        "## Counts",
        _table(
            ("", "statements", "high bias", "low bias", "pairs", "topics"),
            [(bias, *_counts(dataset, bias)) for bias in [*biases, *(["all"] if len(biases) > 1 else [])]],
        ),
        "Left out: " + (", ".join(f"{count} {reason}" for reason, count in left_out) or "none") + ".",
        _splits(dataset),
        "## Scores",
        _histogram(scores),
        "## Quality",
        quality_lines(dataset),
        "## Audit",
        "What predicts which text was chosen, on held-out topics (`parley report` on this folder prints more):",
        "\n".join(f"- {line}" for line in audit_lines(dataset)),
        *_audit_table(dataset),
        "## Runs",
        _table(
            ("run", "id", "mode", "models", "student", "debates done", "not done", "roles", "rounds"),
            [
                (
                    source.path.name,
                    source.run_id,
                    config.get("mode", source.info["study"]),
                    ", ".join(source.info["models"]),
                    config.get("model", ""),
                    source.units["done"],
                    source.units["planned"] + source.units["failed"],
                    config.get("roles", ""),
                    config.get("rounds", ""),
                )
                for source in dataset.sources
                for config in [source.info["config"]]
            ],
        ),
        "## Settings",
        "\n".join(f"- `{key}`: {value}" for key, value in settings.model_dump(mode="json").items()),
        f"- prompt of every row: `{NEUTRAL.text}`" if dataset.refereed else "- prompt: the opening of the conversation",
        "## Known limits",
        LIMITS if dataset.refereed else OTHER_LIMITS,
    ]
    return "\n\n".join(parts) + "\n"


def referee_lines(dataset: Dataset) -> list[str]:
    """The result of each run's referee check, or that a referee scored debates without one."""
    if not dataset.refereed:
        return []
    lines: dict[str, None] = {}
    for source in dataset.sources:
        check = source.info.get("check")
        said = check.get("sentence") if isinstance(check, Mapping) else None
        lines[str(said) if said else "The referee was not checked on texts of known order (`parley run referee`)."] = (
            None
        )
    return list(lines)


def cautions(dataset: Dataset) -> list[str]:
    """What is known about the models of the runs: that they are simulated, or were not shown to judge."""
    lines: dict[str, None] = {}
    for name in (name for source in dataset.sources for name in source.info["models"]):
        if provider_of(name).simulated:
            lines[f"{name} is SIMULATED: texts and scores are planted, not written by a language model."] = None
        lines |= dict.fromkeys(judging_cautions([name]).values())
    return list(lines)


def _counts(dataset: Dataset, bias: str) -> tuple[int, ...]:
    def matches(statement: Statement) -> bool:
        return bias in ("all", statement.bias)

    return (
        sum(map(matches, dataset.statements)),
        sum(map(matches, dataset.groups.high)),
        sum(map(matches, dataset.groups.low)),
        sum(matches(pair.rejected) for pair in dataset.pairs),
        len({normal(statement.topic) for statement in dataset.statements if matches(statement)}),
    )


def _splits(dataset: Dataset) -> str:
    topics = Counter(dataset.split_of.values())
    return (
        "Topics by split: " + ", ".join(f"{split} {topics[split]}" for split in ("train", "validation", "test")) + "."
    )


def _histogram(scores: list[float]) -> str:
    """Eleven bars: the points 0 to 10, or bins of equal width where scores are on another scale."""
    lowest, highest = min(scores, default=0), max(scores, default=10)
    on_points = lowest >= 0 and 1 < highest <= 10
    start, step = (0.0, 1.0) if on_points else (lowest, (highest - lowest) / 10 or 1.0)
    counts = Counter(min(int((score - start) / step + 1e-9), 10) for score in scores)
    largest = max(counts.values(), default=1)
    lines = [
        f"{start + step * bar:>{2 if on_points else 6}.{0 if on_points else 2}f} "
        f"{'#' * math.ceil(40 * counts[bar] / largest):<40} {counts[bar]}"
        for bar in range(11)
    ]
    return "```\n" + "\n".join(lines) + "\n```"


def quality_lines(dataset: Dataset) -> str:
    """The quality figures as a Markdown list."""
    length, leaks, flags = (dataset.quality[key] for key in ("length", "leakage", "flags"))
    checked = flags if dataset.refereed else {flag: flags[flag] for flag in CHECKED_FLAGS}
    lines = [
        f"Length: chosen {_number(length['words_chosen'], '.1f')} words, rejected "
        f"{_number(length['words_rejected'], '.1f')}; length alone separates them in "
        f"{_number(length['by_length_alone'], '.0%')} of pairs (chance is 50%).",
        *([_on_leakage(leaks, len(dataset.pairs))] if dataset.refereed else []),
        "Flagged statements: "
        + ", ".join(f"{flag.replace('_', ' ')} {count}" for flag, count in checked.items())
        + ".",
    ]
    return "\n".join(f"- {line}" for line in lines)


def _on_leakage(leaks: Mapping[str, int], pairs: int) -> str:
    return (
        f"Role revealed in chosen only {leaks['role_in_chosen_only']}, in rejected only "
        f"{leaks['role_in_rejected_only']}, in both {leaks['role_in_both']}; another speaker named in chosen only "
        f"{leaks['names_in_chosen_only']}, in rejected only {leaks['names_in_rejected_only']}, in both "
        f"{leaks['names_in_both']} (of {plural(pairs, 'pair')})."
    )


def _audit_table(dataset: Dataset) -> list[str]:
    rows = [row for row in dataset.audit.get("shortcuts", []) if row["n"]]
    if not rows:
        return []
    cells = [(row["predictor"], f"{row['estimate']:.2f}", _interval(row), row["n"], row["clusters"]) for row in rows]
    return [_table(("predictor", "accuracy", "95% interval", "pairs", "topics"), cells)]


def _interval(row: dict[str, Any]) -> str:
    return "–" if row["low"] is None else f"{row['low']:.2f} to {row['high']:.2f}"


def audit_lines(dataset: Dataset) -> list[str]:
    """What a blind referee said about the pairs, and what predicts them apart from their content."""
    return [
        confirmation_line(
            dataset.confirmation,
            dataset.settings.unconfirmed,
            refereed=dataset.refereed,
            silent=any(statement.by_wording for statement in dataset.statements),
        ),
        *dataset.audit["sentences"],
    ]


def _number(value: float, spec: str) -> str:
    return "–" if math.isnan(value) else format(value, spec)


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
