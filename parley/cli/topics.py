"""`parley topics list|generate`: debate topics, the shipped ones and new ones written with a model."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import cast

from parley.base.errors import ConfigError, ParleyError
from parley.base.text import plural, visible
from parley.cli.flags import add_flags, given
from parley.cli.run import execute_job
from parley.cli.shared import AddParser
from parley.judging.rldf.topics import CollectedTopics, TopicsConfig, WriteTopics
from parley.runs import RunFile
from parley.runs.job import Job
from parley.runs.options import Options, validated
from parley.scenarios import BIASES, load_topics, near_duplicates


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = verbs.add_parser("list", help="list the topics of a bias type or a file, and pairs of near-duplicates")
    listing.add_argument(
        "bias", nargs="?", help=f"{', '.join(BIASES)}, or a .txt file (default: the number of topics of each)"
    )
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(handler=lambda parsed, rest: _list(parsed))
    writing = verbs.add_parser("generate", help="write topics with a model")
    writing.add_argument("bias", help=f"{', '.join(BIASES)}, or a .toml file of roles")
    writing.add_argument("--to", metavar="FILE", help="the text file to write (default: BIAS-topics.txt)")
    writing.add_argument("--force", action="store_true", help="overwrite an existing file")
    writing.add_argument("--quiet", action="store_true", help="show no progress")
    writing.add_argument("--json", action="store_true", help="print JSON")
    add_flags(writing, TopicsConfig, "writing", leave_out={"bias"})
    add_flags(writing, Options, "run")
    writing.set_defaults(handler=lambda parsed, rest: _generate(parsed))


def _list(parsed: argparse.Namespace) -> int:
    if parsed.bias is None:
        counts = {bias: len(load_topics(bias)) for bias in BIASES}
        print(json.dumps(counts) if parsed.json else "\n".join(f"{bias:<12} {count}" for bias, count in counts.items()))
        return 0
    topics = load_topics(parsed.bias)
    pairs = near_duplicates(topics)
    if parsed.json:
        print(json.dumps({"topics": topics, "near": pairs}, ensure_ascii=False, indent=2))
        return 0
    for topic in topics:
        print(visible(topic))
    print(f"{plural(len(topics), 'topic')}, {plural(len(pairs), 'pair')} of near-duplicates")
    for first, second in pairs:
        print(visible(f"  {first} / {second}"))
    return 0


def _generate(parsed: argparse.Namespace) -> int:
    options = validated(Options, given(parsed, Options))
    job = Job.make(WriteTopics.name, {**given(parsed, TopicsConfig), "bias": parsed.bias}, options)
    study = cast(WriteTopics, job.study)
    target = Path(parsed.to) if parsed.to else Path(f"{study.bias.trait}-topics.txt")
    if target.suffix != ".txt":
        raise ConfigError(f"{target}: the name of a list of topics must end in .txt")
    if target.exists() and not parsed.force and not _is_output_of(target, job.path):
        raise ConfigError(f"{target} already exists; choose another file with --to, or overwrite it with --force")
    status = execute_job(job, quiet=parsed.quiet, as_json=parsed.json)
    with RunFile.open(job.path) as file:
        collected = study.harvest(file.accepted())
    total = sum(map(len, collected.topics.values()))
    if not total:
        raise ParleyError(f"nothing was accepted, so no file was written; parley show {job.path} shows why")
    try:
        heading = f"{_signature(job.path)} that run has every attempt. Edit freely, one topic per line.\n"
        target.write_text(heading + _as_text(collected), "utf-8")
    except OSError as error:
        raise ParleyError(f"{target} cannot be written: {error.strerror}") from None
    if not parsed.json:
        missing = f", {collected.missing} fewer than requested" if collected.missing else ""
        counts = f"{plural(total, 'topic')} in {plural(len(collected.topics), 'area')}{missing}"
        print(f"{counts}; {plural(len(collected.near), 'near-duplicate')} left out: {target}")
    return status or int(collected.missing > 0)


def _signature(run: Path) -> str:
    return f"# Written by {run.name};"


def _as_text(collected: CollectedTopics) -> str:
    return "".join(
        f"# {area}\n" + "".join(f"{topic}\n" for topic in topics) for area, topics in collected.topics.items()
    )


def _is_output_of(target: Path, run: Path) -> bool:
    """Whether this run wrote the file, so that a resumed run may overwrite it."""
    try:
        return target.read_text("utf-8").startswith(_signature(run))
    except (OSError, UnicodeDecodeError):
        return False
