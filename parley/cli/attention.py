"""`parley attention RUN`: how much a model looks at the framing's words, for a framing run on weights we hold."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from parley.agents import ConfigError
from parley.agents.models.catalogue import catalogue, is_fetched, weights_path
from parley.cli.commands import AddParser
from parley.cli.text import visible
from parley.runs import RunFile


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("run", help="a run file of the study framing")
    parser.add_argument("--weights", metavar="PATH", help="a .gguf file or a transformers folder (default: the run's)")
    parser.add_argument("--topics", type=int, default=20, metavar="N", help="at most so many of the run's topics")
    parser.add_argument("--json", action="store_true", help="everything, by topic, layer and token")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    from parley.judging.rldf.attention import AttentionWeights

    file = RunFile.open(Path(parsed.run))
    info = file.info()
    if info["study"] != "framing":
        raise ConfigError(f"{parsed.run}: a run of 'framing' is asked for, and this is one of '{info['study']}'")
    asked = _asked(file, parsed.topics)
    file.close()
    if not asked:
        raise ConfigError(f"{parsed.run} has no finished unit yet")
    weights = AttentionWeights.load(Path(parsed.weights) if parsed.weights else _weights_of(info["config"]["model"]))
    found: dict[str, list[Any]] = {}
    for frame, chat in asked:
        found.setdefault(frame, []).append(weights.attention_to(chat, chat[-1]["content"].partition("\n")[0]))
    rows = {frame: _summary(looks) for frame, looks in found.items()}
    if parsed.json:
        each = {
            frame: [{"by_layer": one.by_layer, "by_token": one.by_token} for one in looks]
            for frame, looks in found.items()
        }
        print(json.dumps({"run": parsed.run, "frames": rows, "each": each}, ensure_ascii=False, indent=2))
        return 0
    print("Attention from the end of the prompt to the framing's words, the first token left out:")
    print(f"{'framing':<8} {'answers':>7} {'tokens':>7} {'share':>8} {'if even':>8} {'ratio':>6}")
    for frame, row in rows.items():
        print(
            visible(f"{frame:<8} {row['answers']:>7} {row['phrase_tokens']:>7.0f} {row['share']:>8.2%} ")
            + f"{row['even']:>8.2%} {row['share'] / row['even']:>6.2f}"
        )
    print("Attention is where a model looks, not why it answers: read it beside the counts of the run.")
    return 0


def _summary(looks: list[Any]) -> dict[str, float]:
    n = len(looks)
    means = {key: sum(getattr(one, key) for one in looks) / n for key in ("tokens", "phrase_tokens", "share", "even")}
    return {"answers": n, **means}


def _asked(file: RunFile, topics: int) -> list[tuple[str, list[dict[str, str]]]]:
    """The prompts of the three framings, exactly as they were sent, of the first so many units."""
    _, rows = file.rows(
        "SELECT m.speaker, c.prompt FROM messages m JOIN calls c ON c.unit = m.unit AND c.seq = m.seq AND c.nth = 0 "
        "JOIN units u ON u.id = m.unit WHERE u.status = 'done' AND m.speaker LIKE 'Asked_%' "
        "AND u.position IN (SELECT position FROM units WHERE status = 'done' ORDER BY position LIMIT ?) "
        "ORDER BY u.position, m.seq",
        (topics,),
    )

    def text(at: int) -> str:
        return str(file.rows("SELECT text FROM texts WHERE id = ?", (at,))[1][0][0])

    return [
        (
            speaker.removeprefix("Asked_"),
            [{"role": role, "content": text(at)} for role, _, at in json.loads(prompt)],
        )
        for speaker, prompt in rows
    ]


def _weights_of(model: str) -> Path:
    provider, _, name = model.partition("?")[0].partition("/")
    if provider != "local":
        raise ConfigError(f"the weights of {model} are not at hand: name a .gguf file or a folder with --weights")
    if name in catalogue() and not is_fetched(name):
        raise ConfigError(f"{model} is not here yet: parley models fetch {name}")
    return weights_path(name) if name in catalogue() else Path(name)
