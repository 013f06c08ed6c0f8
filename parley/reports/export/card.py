"""The dataset card: contents, runs, methods and known limits."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import yaml

from parley import __version__
from parley.agents.providers import provider_of
from parley.base.text import number_text, plural
from parley.judging.rldf.statements import SPLITS
from parley.reports.cautions import judging_cautions
from parley.reports.export.dataset import Dataset, Table
from parley.reports.export.quality import confirmation_line
from parley.reports.export.sources import CHECKED_FLAGS
from parley.reports.export.statements import NEUTRAL
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

COLUMNS = {
    "id": "run, conversation, round and speaker; in a pair, of both texts",
    "prompt": "what the text answers, a message of the user",
    "chosen": "messages that end with the text of the better score",
    "rejected": "messages that end with the text of the worse score",
    "completion": "the text, a message of the assistant",
    "label": "true: the text has the better score",
    "margin": "difference between the two scores",
    "score_chosen": "score of the chosen text",
    "score_rejected": "score of the rejected text",
    "bias": "kind of bias debated, or the name of the study",
    "topic": "what was talked about",
    "topic_id": "short name of the topic",
    "shares": "what the two texts share: the speaker, the round, or only the topic",
    "confirmed": "whether a blind referee, or a silent one in every wording, also prefers the chosen text",
    "blind_chosen": "blind referee's score of the chosen text",
    "blind_rejected": "blind referee's score of the rejected text",
    "speaker": "who wrote the text",
    "speaker_chosen": "who wrote the chosen text",
    "speaker_rejected": "who wrote the rejected text",
    "round": "round of the text",
    "round_chosen": "round of the chosen text",
    "round_rejected": "round of the rejected text",
    "model": "model that wrote the text",
    "model_chosen": "model that wrote the chosen text",
    "model_rejected": "model that wrote the rejected text",
    "mode": "mode of the debate, or the name of the study",
    "run": "name of the run",
    "run_id": "identifier of the run",
    "debate": "run and conversation",
    "student": "model that is to be trained",
    "text": "the text",
    "score": "score of the text",
    "rank": "rank of the text in its round, 1 for the most biased",
    "status": "whether the judge's report could be read",
    "score_again": "blind referee's score of the text",
    "flags": "faults of the text: role_break, leak, refused, echo, loop, cut; shortened: others' turns were left out",
    "side": "high: rejected; low: chosen",
}
"""Descriptions of the columns."""
TYPES = {bool: "true or false", int: "whole number", float: "number", str: "text", list: "list"}
LONG_TEXT = re.compile(r'("(?:[^"\\]|\\.){280})(?:[^"\\]|\\.)+')
"""A text in JSON, the part that the example row shows as its group."""


def card(dataset: Dataset, tables: dict[str, Table], name: str) -> str:
    """The card for the hub: a YAML header, then Markdown.

    Args:
        dataset: The dataset to describe.
        tables: Its tables in the exported format.
        name: Its folder.
    """
    head = yaml.safe_dump(_head(dataset, tables), sort_keys=False, allow_unicode=True)
    return f"---\n{head}---\n\n{_body(dataset, tables, name)}"


def load_lines(tables: dict[str, Table], name: str) -> list[str]:
    """A line of Python for each table, which loads it with the package `datasets`."""
    name = name if "/" in name else f"./{name}"  # a folder "parquet" or "json" would be taken for that loader
    return [f"load_dataset({', '.join(repr(word) for word in (name, table) if word)})" for table in tables]


def _head(dataset: Dataset, tables: dict[str, Table]) -> dict[str, Any]:
    head: dict[str, Any] = {
        "license": dataset.settings.licence,
        "task_categories": ["text-generation"]
        if dataset.settings.format == "sft"
        else ["reinforcement-learning", "text-generation"],
        "pretty_name": _title(dataset),
        "tags": ["parley", dataset.study, "trl", "bias", *(["preference"] if dataset.paired else []), "synthetic"],
    }
    first = next((name for name, table in tables.items() if any(table.values())), "")
    head["configs"] = [
        {
            "config_name": name or "default",
            **({"default": True} if name == first else {}),
            # load_dataset keys its cache on this header, not on the files: without a digest of the rows, a folder
            # that was written again would be loaded as it was before.
            "description": f"rows {sha256(json.dumps(table).encode()).hexdigest()[:12]}",
            "data_files": [
                {"split": split, "path": f"{name + '/' if name else ''}{split}.jsonl"}
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


def _body(dataset: Dataset, tables: dict[str, Table], name: str) -> str:
    settings, biases = dataset.settings, _biases(dataset)
    loads = load_lines(tables, name)
    sides = ("high bias", "low bias") if dataset.refereed else ("worse", "better")
    parts = [
        f"# {_title(dataset)}",
        *(f"> **{line}**" for line in [*referee_lines(dataset), *cautions(dataset)]),
        f"Made with Parley {__version__} from {_origin(dataset)} {_what_a_row_is(dataset)}",
        "```python\nfrom datasets import load_dataset\n\n"
        + "\n".join(f"{table or 'rows'} = {load}" for table, load in zip(tables, loads, strict=True))
        + "\n```",
        *(part for table, splits in tables.items() if any(splits.values()) for part in _described(table, splits)),
        "## Counts",
        _table(
            ("", "statements", *sides, *(["pairs"] if dataset.paired else []), "topics"),
            [(bias, *_counts(dataset, bias)) for bias in [*biases, *(["all"] if len(biases) > 1 else [])]],
        ),
        "Left out: " + (", ".join(left_out(dataset)) or "none") + ".",
        _splits(dataset, tables),
        "## Quality",
        quality_lines(dataset),
        *(_audit(dataset) if dataset.paired else []),
        "## Runs",
        _runs(dataset),
        "## Settings",
        "\n".join(
            f"- `{key}`: {', '.join(map(number_text, value if isinstance(value, list) else [value]))}"
            for key, value in settings.model_dump(mode="json").items()
        ),
        f"The prompt of every row is `{NEUTRAL.text}`" if dataset.refereed else "The prompt opens the conversation.",
        "## Known limits",
        LIMITS if dataset.refereed else OTHER_LIMITS,
    ]
    return "\n\n".join(parts) + "\n"


def _runs(dataset: Dataset) -> str:
    rows = [
        {
            "run": source.path.name,
            "id": source.run_id,
            "mode": config.get("mode", source.info["study"]),
            "models": ", ".join(source.info["models"]),
            "student": config.get("model", ""),
            f"{'debates' if dataset.refereed else 'conversations'} done": source.units["done"],
            "not done": source.units["planned"] + source.units["failed"],
            "roles": config.get("roles", ""),
            "rounds": config.get("rounds", ""),
        }
        for source in dataset.sources
        for config in [source.info["config"]]
    ]
    head = tuple(column for column in rows[0] if any(row[column] != "" for row in rows))
    return _table(head, [tuple(row[column] for column in head) for row in rows])


def _what_a_row_is(dataset: Dataset) -> str:
    settings = dataset.settings
    worse, better = ("above", "or less") if settings.better == "low" else ("below", "or more")
    at = f"{settings.threshold:g}"
    if settings.format == "sft":
        return f"A row is a text that scores {at} {better}."
    if settings.format == "kto":
        return f"A row is a text; its label is true if it scores {at} {better}."
    called = "high bias, the others low" if dataset.refereed else "worse, the others better"
    return (
        "A pair is a text with a better score (chosen) and one with a worse score (rejected) of the same conversation. "
        f"Scores {worse} {at} are called {called}."
    )


def _described(name: str, splits: Table) -> Iterator[str]:
    """The columns of a table, and its first row."""
    rows = [row for part in splits.values() for row in part]
    flat = [row | {f"meta.{key}": value for key, value in row.get("meta", {}).items()} for row in rows]
    columns = {
        column: next((row[column] for row in flat if row[column] not in (None, [])), None)
        for column in flat[0]
        if column != "meta"
    }
    yield f"## Columns{f' of {name}' if name else ''}"
    yield _table(
        ("column", "type", "content"),
        [
            (f"`{column}`", TYPES.get(type(value), "empty here"), COLUMNS[column.removeprefix("meta.")])
            for column, value in columns.items()
        ],
    )
    yield "The first row, with long texts cut:"
    yield LONG_TEXT.sub(r"\1 …", f"```json\n{json.dumps(rows[0], indent=2, ensure_ascii=False)}\n```")


def left_out(dataset: Dataset) -> list[str]:
    """Number of statements left out, by reason."""
    counts = sorted(dataset.groups.left_out.items())
    return [
        f"{count:,} {reason if count == 1 else reason.replace('repeated text', 'repeated texts')}"
        for reason, count in counts
    ]


def referee_lines(dataset: Dataset) -> list[str]:
    """The result of each run's referee check, or that a referee scored debates without one."""
    if not dataset.refereed:
        return []
    lines: dict[str, None] = {}
    for source in dataset.sources:
        check = source.info.get("check")
        sentence = check.get("sentence") if isinstance(check, Mapping) else None
        lines[
            str(sentence) if sentence else "The referee was not checked on texts of known order (`parley run referee`)."
        ] = None
    return list(lines)


def cautions(dataset: Dataset) -> list[str]:
    """Cautions about the runs' models: simulated, or not shown to judge."""
    lines: dict[str, None] = {}
    for name in (name for source in dataset.sources for name in source.info["models"]):
        if provider_of(name).simulated:
            lines[f"{name} is SIMULATED: texts and scores are planted, not written by a language model."] = None
        lines |= dict.fromkeys(judging_cautions([name]).values())
    return list(lines)


def _counts(dataset: Dataset, bias: str) -> tuple[int, ...]:
    parts = [dataset.statements, dataset.groups.high, dataset.groups.low]
    parts += [[pair.rejected for pair in dataset.pairs]] if dataset.paired else []
    of_bias = [[statement for statement in part if bias in ("all", statement.bias)] for part in parts]
    return (*map(len, of_bias), len({normal(statement.topic) for statement in of_bias[0]}))


def _splits(dataset: Dataset, tables: dict[str, Table]) -> str:
    topics = Counter(dataset.split_of.values())
    rows = [
        (f"rows{f' of {name}' if name else ''}", *(len(part) for part in table.values()))
        for name, table in tables.items()
    ]
    return _table(("split", *SPLITS), [("topics", *(topics[split] for split in SPLITS)), *rows])


def quality_lines(dataset: Dataset) -> str:
    """The quality figures as a Markdown list."""
    length, leaks, flags = (dataset.quality[key] for key in ("length", "leakage", "flags"))
    checked = flags if dataset.refereed else {flag: flags[flag] for flag in CHECKED_FLAGS}
    of_pairs = [
        f"Length: chosen {_number(length['words_chosen'], '.1f')} words, rejected "
        f"{_number(length['words_rejected'], '.1f')}; length alone separates them in "
        f"{_number(length['by_length_alone'], '.0%')} of pairs (chance is 50%).",
        *([_on_leakage(leaks, len(dataset.pairs))] if dataset.refereed else []),
    ]
    lines = [
        *(of_pairs if dataset.paired else []),
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


def _audit(dataset: Dataset) -> list[str]:
    rows = [row for row in dataset.audit.get("shortcuts", []) if row["n"]]
    cells = [
        (row["predictor"], f"{row['estimate']:.2f}", _interval(row), row["n"], int(row["clusters"])) for row in rows
    ]
    return [
        "## Audit",
        "What predicts which text was chosen, on held-out topics (`parley report` on this folder prints more):",
        "\n".join(f"- {line}" for line in audit_lines(dataset)),
        *([_table(("predictor", "accuracy", "95% interval", "pairs", "topics"), cells)] if rows else []),
    ]


def _interval(row: dict[str, Any]) -> str:
    return "–" if row["low"] is None else f"{row['low']:.2f} to {row['high']:.2f}"


def audit_lines(dataset: Dataset) -> list[str]:
    """The agreement of a blind referee with the pairs, and predictors besides their content."""
    if not dataset.paired:
        return []
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
