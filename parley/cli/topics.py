"""`parley topics list|generate`: debate topics, the shipped ones and new ones written with a model."""

from __future__ import annotations

import argparse
import json

from parley.base.text import plural, visible
from parley.cli.shared import AddParser
from parley.cli.writer import add_writer_flags, nothing_accepted, run_writer
from parley.judging.rldf.topics import CollectedTopics, TopicsConfig, WriteTopics
from parley.scenarios import BIASES, load_topics, near_duplicates


def add_list(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument(
        "bias", nargs="?", help=f"{', '.join(BIASES)}, or a .txt file (default: count the topics of each)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(handler=_list)


def add_generate(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("bias", help=f"{', '.join(BIASES)}, or a .toml file of roles")
    add_writer_flags(parser, TopicsConfig, {"bias"}, "the text file to write (default: BIAS-topics.txt)")
    parser.set_defaults(handler=_generate)


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
    written = run_writer(parsed, WriteTopics, {"bias": parsed.bias}, lambda study: f"{study.bias.trait}-topics.txt")
    if not written.accepted:
        return written.status
    collected: CollectedTopics = written.study.harvest(written.accepted)
    total = sum(map(len, collected.topics.values()))
    if not total:
        raise nothing_accepted(written.run)
    written.save(_as_text(collected), "Edit freely, one topic per line.")
    if not parsed.json:
        missing = f", {collected.missing} fewer than requested" if collected.missing else ""
        counts = f"{plural(total, 'topic')} in {plural(len(collected.topics), 'area')}{missing}"
        print(f"{counts}; {plural(len(collected.near), 'near-duplicate')} left out: {written.target}")
    return written.status or int(collected.missing > 0)


def _as_text(collected: CollectedTopics) -> str:
    return "".join(
        f"# {area}\n" + "".join(f"{topic}\n" for topic in topics) for area, topics in collected.topics.items()
    )
