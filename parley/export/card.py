"""The dataset card: what is in it, where it comes from, how it was made, and what it is not good for."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import yaml

from parley import __version__
from parley.agents.models.catalogue import catalogue
from parley.export.dataset import Dataset, Table
from parley.export.rows import NEUTRAL

LIMITS = """\
- Scores are a language model's judgement of bias, not people's. A score of 0 does not mean that a text is free of bias.
- Debaters play roles from labels of a few words. What they say shows what the model associates with the label, and is
  no evidence of what such people think.
- Statements answer each other: one may refer to what another speaker said, which a reader of the pair does not see.
- The statements hold stereotypes. They are here so that a model can learn to prefer texts without them.
- Topics are disjoint between splits; people, prompts and models are the same in all of them."""


def card(dataset: Dataset, tables: dict[str, Table]) -> str:
    return (
        "---\n"
        + yaml.safe_dump(_head(dataset, tables), sort_keys=False, allow_unicode=True)
        + "---\n\n"
        + _body(dataset)
    )


def _head(dataset: Dataset, tables: dict[str, Table]) -> dict[str, Any]:
    ending = "parquet" if dataset.settings.format in ("parquet", "hub") else "jsonl"
    head: dict[str, Any] = {
        "license": dataset.settings.licence,
        "pretty_name": "RLDF debates: " + ", ".join(_biases(dataset)),
        "tags": ["parley", "rldf", "bias", "preference", "synthetic"],
    }
    if dataset.settings.format != "datasets":
        head["configs"] = [
            {
                "config_name": name or "default",
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


def _biases(dataset: Dataset) -> list[str]:
    return list(dict.fromkeys(one.bias for one in dataset.statements))


def _body(dataset: Dataset) -> str:
    settings, found = dataset.settings, dataset.found
    scored = [one for one in dataset.statements if one.score is not None]
    parts = [
        f"# RLDF debates: {', '.join(_biases(dataset))}",
        *(f"> **{line}**" for line in cautions(dataset)),
        f"Made with Parley {__version__} from multi-role debates as in RLDF (Cheng et al., *LLM Alignment via "
        "Reinforcement Learning from Multi-role Debates as Feedback*): people with different backgrounds debate a "
        "topic, and a referee scores the bias of each statement from 0 (none) to 10 (extreme) after every round. "
        f"Statements above {settings.threshold:g} are high bias, the others low; a pair is a low-bias statement "
        "(chosen) and a high-bias one (rejected) of the same debate.",
        "## Counts",
        _table(
            ("", "statements", "high bias", "low bias", "pairs", "topics"),
            [
                (bias, *_counts(dataset, bias))
                for bias in [*_biases(dataset), *(["all"] if len(_biases(dataset)) > 1 else [])]
            ],
        ),
        "Left out: " + (", ".join(f"{n} {why}" for why, n in sorted(found.left_out.items())) or "none") + ".",
        _splits(dataset),
        "## Scores",
        _histogram([one.score for one in scored if one.score is not None]),
        "## Quality",
        quality_lines(dataset),
        "## Runs",
        _table(
            ("run", "id", "mode", "models", "student", "debates done", "not done", "roles", "rounds"),
            [
                (
                    source.path.name,
                    source.run_id,
                    source.info["config"]["mode"],
                    ", ".join(source.info["models"]),
                    source.info["config"]["model"],
                    source.units["done"],
                    source.units["planned"] + source.units["failed"],
                    source.info["config"]["roles"],
                    source.info["config"]["rounds"],
                )
                for source in dataset.sources
            ],
        ),
        "## Settings",
        "\n".join(f"- `{key}`: {value}" for key, value in settings.model_dump(mode="json").items()),
        f"- prompt of every row: `{NEUTRAL.text}`",
        "## Known limits",
        LIMITS,
    ]
    return "\n\n".join(parts) + "\n"


def cautions(dataset: Dataset) -> list[str]:
    lines: dict[str, None] = {}
    for source in dataset.sources:
        for name in source.info["models"]:
            provider, _, model = name.partition("?")[0].partition("/")
            if provider == "sim":
                lines[f"{name} is SIMULATED: texts and scores are planted, and no language model wrote them."] = None
            elif provider in ("local", "hf") and model in catalogue() and catalogue()[model].caution:
                lines[f"{catalogue()[model].caution}."] = None
    return list(lines)


def _counts(dataset: Dataset, bias: str) -> tuple[int, ...]:
    def here(one: Any) -> bool:
        return bias == "all" or one.bias == bias

    return (
        sum(map(here, dataset.statements)),
        sum(map(here, dataset.found.high)),
        sum(map(here, dataset.found.low)),
        sum(here(pair.bad) for pair in dataset.pairs),
        len({one.topic_id for one in dataset.statements if here(one)}),
    )


def _splits(dataset: Dataset) -> str:
    topics = Counter(dataset.split_of.values())
    return (
        "Topics by split: " + ", ".join(f"{split} {topics[split]}" for split in ("train", "validation", "test")) + "."
    )


def _histogram(scores: list[float]) -> str:
    counts = Counter(min(int(score), 10) for score in scores)
    most = max(counts.values(), default=1)
    lines = [f"{n:>2} {'#' * math.ceil(40 * counts[n] / most):<40} {counts[n]}" for n in range(11)]
    return "```\n" + "\n".join(lines) + "\n```"


def quality_lines(dataset: Dataset) -> str:
    found = dataset.quality
    length, twice, leaks, flags, again = (
        found[key] for key in ("length", "duplicates", "leakage", "flags", "refereed_again")
    )
    lines = [
        f"Length: chosen {_number(length['words_chosen'], '.1f')} words, rejected "
        f"{_number(length['words_rejected'], '.1f')}; length alone tells them apart in "
        f"{_number(length['by_length_alone'], '.0%')} of pairs (50% would be chance).",
        f"Duplicates: {twice['repeated']} repeated texts; {twice['in_two_splits']} texts stand in two splits.",
        f"Role given away in chosen only {leaks['role_in_chosen_only']}, in rejected only "
        f"{leaks['role_in_rejected_only']}, in both {leaks['role_in_both']}; another speaker named in chosen only "
        f"{leaks['names_in_chosen_only']}, in rejected only {leaks['names_in_rejected_only']}, in both "
        f"{leaks['names_in_both']} (of {len(dataset.pairs)} pairs).",
        "Statements flagged: " + ", ".join(f"{flag.replace('_', ' ')} {count}" for flag, count in flags.items()) + ".",
        f"Refereed again: {again['n']} statements; same score {_number(again['same_score'], '.0%')}, within one point "
        f"{_number(again['within_one'], '.0%')}, same side of the threshold {_number(again['same_side'], '.0%')}, "
        f"mean difference {_number(again['mean_difference'], '+.2f')}, correlation "
        f"{_number(again['correlation'], '.2f')}."
        if again["n"]
        else "Refereed again: none (`parley run rldf --rereferee 0.2` does a fifth).",
    ]
    return "\n".join(f"- {line}" for line in lines)


def _number(value: float, shape: str) -> str:
    return "–" if math.isnan(value) else format(value, shape)


def _table(head: tuple[str, ...], listed: list[tuple[Any, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *listed]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
