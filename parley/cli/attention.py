"""`parley attention RUN`: how much attention a model pays to the words of the framing; needs its weights."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from parley.agents.models.catalogue import catalogue, fetch, is_fetched
from parley.agents.providers import provider_of
from parley.base.errors import ConfigError
from parley.base.text import visible
from parley.cli.shared import AddParser
from parley.judging.rldf.attention import AttentionWeights
from parley.runs import RunFile, explain_damage


def add_to(add_parser: AddParser) -> None:
    parser = add_parser()
    parser.add_argument("run", help="a run file of the study framing")
    parser.add_argument(
        "--weights", metavar="PATH", help="a .gguf file or a transformers folder (default: the run's own weights)"
    )
    parser.add_argument("--topics", type=int, default=20, metavar="N", help="number of topics to measure (default: 20)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON, by topic, layer and token")
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace) -> int:
    path = Path(parsed.run)
    with explain_damage(path), RunFile.open(path) as file:
        info = file.info()
        if info["study"] != "framing":
            raise ConfigError(f"{parsed.run} is a run of '{info['study']}'; attention needs a run of 'framing'")
        prompts = _framing_prompts(file, parsed.topics)
    if not prompts:
        raise ConfigError(f"{parsed.run} has no finished unit yet")
    weights = AttentionWeights.load(Path(parsed.weights) if parsed.weights else _weights_of(info["config"]["model"]))
    attention_of: dict[str, list[Any]] = {}
    for frame, chat in prompts:
        attention_of.setdefault(frame, []).append(weights.attention_to(chat, chat[-1]["content"].partition("\n")[0]))
    rows = {frame: _means(measured) for frame, measured in attention_of.items()}
    if parsed.json:
        each = {
            frame: [{"by_layer": prompt.by_layer, "by_token": prompt.by_token} for prompt in measured]
            for frame, measured in attention_of.items()
        }
        print(json.dumps({"run": parsed.run, "frames": rows, "each": each}, ensure_ascii=False, indent=2))
        return 0
    print("Attention from the end of the prompt to the framing's words, without the first token:")
    print(f"{'framing':<8} {'answers':>7} {'tokens':>7} {'share':>8} {'if even':>8} {'ratio':>6}")
    for frame, row in rows.items():
        print(
            visible(f"{frame:<8} {row['answers']:>7} {row['phrase_tokens']:>7.0f} {row['share']:>8.2%} ")
            + f"{row['even']:>8.2%} {row['share'] / row['even']:>6.2f}"
        )
    print("Attention does not explain an answer: read it together with the counts of `parley report`.")
    return 0


def _means(measured: list[Any]) -> dict[str, float]:
    n = len(measured)
    keys = ("tokens", "phrase_tokens", "share", "even")
    return {"answers": n, **{key: sum(getattr(prompt, key) for prompt in measured) / n for key in keys}}


def _framing_prompts(file: RunFile, topics: int) -> list[tuple[str, list[dict[str, str]]]]:
    """The prompts of the three framings as they were sent, of the first `topics` units."""
    _, rows = file.rows(
        "SELECT m.speaker, c.prompt FROM messages m JOIN calls c ON c.unit = m.unit AND c.seq = m.seq AND c.nth = 0 "
        "JOIN units u ON u.id = m.unit WHERE u.status = 'done' AND m.speaker LIKE 'Asked_%' "
        "AND u.position IN (SELECT position FROM units WHERE status = 'done' ORDER BY position LIMIT ?) "
        "ORDER BY u.position, m.seq",
        (topics,),
    )

    def text(text_id: int) -> str:
        return str(file.rows("SELECT text FROM texts WHERE id = ?", (text_id,))[1][0][0])

    return [
        (
            speaker.removeprefix("Asked_"),
            [{"role": role, "content": text(text_id)} for role, _, text_id in json.loads(prompt)],
        )
        for speaker, prompt in rows
    ]


def _weights_of(model: str) -> Path:
    name = model.partition("?")[0].partition("/")[2]
    if not provider_of(model).embedded:
        raise ConfigError(f"{model} has no local weights: give a .gguf file or a folder with --weights")
    if name in catalogue() and not is_fetched(name):
        raise ConfigError(f"{model} is not downloaded yet: parley models fetch {name}")
    return fetch(name) if name in catalogue() else Path(name)
