"""`parley topics list|generate`: topics to debate, the shipped ones and new ones written with a model of choice."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from parley.agents import ConfigError, ParleyError
from parley.cli.commands import AddParser
from parley.cli.flags import add_flags, given
from parley.cli.text import visible
from parley.execute import Job, Options, explain
from parley.judging.rldf.topics import CollectedTopics, TopicsConfig, WriteTopics
from parley.runs import RunFile
from parley.scenarios import BIASES, load_topics, near_duplicates


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = verbs.add_parser("list", help="the topics of a bias type or a file, with those that are nearly the same")
    listing.add_argument("bias", nargs="?", help=f"{', '.join(BIASES)}, or a .txt file (default: a count of each)")
    listing.add_argument("--json", action="store_true")
    listing.set_defaults(handler=lambda parsed, rest: _list(parsed))
    writing = verbs.add_parser("generate", help="write topics with a model")
    writing.add_argument("bias", help=f"{', '.join(BIASES)}, or a .toml file of roles")
    writing.add_argument("--to", metavar="FILE", help="the text file to write (default: <bias>-topics.txt)")
    writing.add_argument("--force", action="store_true", help="write over a file that is there")
    writing.add_argument("--quiet", action="store_true", help="no progress")
    writing.add_argument("--json", action="store_true")
    add_flags(writing, TopicsConfig, "the writing", leave_out={"bias"})
    add_flags(writing, Options, "the run")
    writing.set_defaults(handler=lambda parsed, rest: _generate(parsed))


def _list(parsed: argparse.Namespace) -> int:
    if parsed.bias is None:
        counts = {bias: len(load_topics(bias)) for bias in BIASES}
        print(json.dumps(counts) if parsed.json else "\n".join(f"{bias:<12} {n}" for bias, n in counts.items()))
        return 0
    topics = load_topics(parsed.bias)
    near = near_duplicates(topics)
    if parsed.json:
        print(json.dumps({"topics": topics, "near": near}, ensure_ascii=False, indent=2))
        return 0
    for topic in topics:
        print(visible(topic))
    print(f"{len(topics)} topics, {len(near)} of them near to another")
    for one, other in near:
        print(visible(f"  near: {one} / {other}"))
    return 0


def _generate(parsed: argparse.Namespace) -> int:
    from parley.cli.run import execute_job

    try:
        options = Options.model_validate(given(parsed, Options))
    except ValidationError as error:
        raise ConfigError(explain(error, Options)) from None
    job = Job.make(WriteTopics.name, {**given(parsed, TopicsConfig), "bias": parsed.bias}, options)
    study = cast(WriteTopics, job.study)
    target = Path(parsed.to) if parsed.to else Path(f"{study.bias.trait}-topics.txt")
    if target.suffix != ".txt":
        raise ConfigError(f"{target}: a list of topics ends in .txt")
    if target.exists() and not parsed.force and not _ours(target, job.path):
        raise ConfigError(f"{target} is there already: name another with --to, or write over it with --force")
    status = execute_job(job, quiet=parsed.quiet, as_json=parsed.json)
    with RunFile.open(job.path) as file:
        found = study.harvest(file.accepted())
    total = sum(map(len, found.topics.values()))
    if not total:
        raise ParleyError(f"nothing was accepted, so no file was written; parley show {job.path} says why")
    try:
        target.write_text(_heading(job.path) + _listed(found), "utf-8")
    except OSError as error:
        raise ParleyError(f"{target} cannot be written: {error.strerror}") from None
    if not parsed.json:
        short = f", {found.missing} short of what was asked" if found.missing else ""
        print(f"{total} topics in {len(found.topics)} areas{short}; {len(found.near)} were near to another: {target}")
    return status or int(found.missing > 0)


def _heading(run: Path) -> str:
    return f"# Written by {run.name}; that run has every try. Edit freely, one topic a line.\n"


def _listed(found: CollectedTopics) -> str:
    return "".join(f"# {area}\n" + "".join(f"{topic}\n" for topic in topics) for area, topics in found.topics.items())


def _ours(target: Path, run: Path) -> bool:
    """Whether this very run wrote the file, so that going on may write it again."""
    try:
        return target.read_text("utf-8").startswith(_heading(run))
    except (OSError, UnicodeDecodeError):
        return False
