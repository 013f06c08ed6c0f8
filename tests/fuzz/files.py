"""Targets: the files that users provide (configs, suites, datasets, pairs) and command-line flags.

Accepted rows are counted: the number must match the file, so that none is dropped silently.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from parley.agents.models.registry import client_class
from parley.agents.models.request import split_name
from parley.cli.flags import read_config, split_config
from parley.judging.config import read_settings
from parley.runs import measure
from parley.runs.job import make_study
from parley.runs.options import Options, validated
from parley.scenarios import check_ballot_wordings, load_ballot_wordings, load_suite
from parley.scenarios.bbq import load as load_bbq
from parley.scenarios.checks import check_suite
from parley.scenarios.identities import read_identities
from parley.scenarios.squad import load as load_squad
from parley.scenarios.squad import sample
from parley.training.config import TrainConfig
from parley.training.pairs import read_pairs
from tests.fuzz import seeds
from tests.fuzz.checking import Target, encoded
from tests.fuzz.strategies import as_csv, as_json, as_jsonl, as_toml, as_yaml, edited_file, edited_text

_FOLDER = tempfile.TemporaryDirectory(prefix="parley-fuzz-")
FOLDER = Path(_FOLDER.name)


def as_file(name: str, parse: Callable[[Path], object]) -> Callable[[bytes], object]:
    """Writes the input to a file of that name, alone in its folder, and parses it."""
    path = FOLDER / name.partition(".")[0] / name
    path.parent.mkdir(exist_ok=True)

    def parse_content(content: bytes) -> object:
        path.write_bytes(content)
        return parse(path)

    return parse_content


def target(
    name: str,
    file_name: str,
    parse: Callable[[Path], object],
    trees: Sequence[Any],
    write: Callable[[Any], str] = as_json,
    *,
    texts: Sequence[str] = (),
) -> Target:
    """A target whose seeds are trees, written as text, and further texts."""
    contents = [write(tree).encode() for tree in trees] + [text.encode() for text in texts]
    return Target(name, contents, edited_file(trees, write, contents), as_file(file_name, parse))


def config(path: Path) -> None:
    table = read_config(path)
    table.pop("study", None)
    study, options = split_config(table, _MALIBU, Options, path.name)
    validated(Options, options)
    measure(make_study("malibu", study))


def model_name(name: str) -> None:
    model, options = split_name(name)
    client_class(model).parse_options(model, options)
    read_settings([name])


def suite(path: Path) -> None:
    loaded, _ = load_suite(str(path))
    check_suite(loaded)
    loaded.digest()
    loaded.to_toml()


def wordings(path: Path) -> None:
    loaded = load_ballot_wordings(path)
    check_ballot_wordings(loaded)
    loaded.digest()
    for label in loaded.label:
        for identity in loaded.identity:
            if loaded.has_forms(label, [identity]):
                loaded.label_text(label, identity)


def rows_of(load: Callable[[Path], Any]) -> Callable[[Path], None]:
    """Loads a dataset; one of JSON lines has as many rows as the file has lines."""

    def read(path: Path) -> None:
        rows = load(path).rows
        if path.suffix == ".jsonl":
            assert len(rows) == sum(bool(line.strip()) for line in path.read_bytes().splitlines())
        encoded(rows)

    return read


def squad(path: Path) -> None:
    data = load_squad(path)
    sample(data.questions, 3, 0)
    encoded(data.questions)


def pairs(path: Path) -> None:
    assert read_pairs(TrainConfig(data=str(path), min_pairs=2, rounds=3, roles=None)).train


_MALIBU = make_study("malibu", {"suite": "tiny"}).Config
_YAML = (seeds.BOMB, seeds.MERGE, "rounds: 2001-99-99", "rounds: 0b_")

TARGETS = (
    target("config, TOML", "c.toml", config, [seeds.CONFIG], as_toml),
    target("config, YAML", "c.yaml", config, [seeds.CONFIG], as_yaml, texts=_YAML),
    Target("model name", seeds.MODELS, edited_text(seeds.MODELS), model_name),
    target("identities", "i.toml", read_identities, [seeds.IDENTITIES], as_toml),
    target("suite", "s.toml", suite, [seeds.SUITE], as_toml),
    target("wordings", "w.toml", wordings, [seeds.WORDINGS], as_toml),
    target("BBQ, JSONL", "bbq.jsonl", rows_of(load_bbq), [seeds.BBQ], as_jsonl),
    target("BBQ, CSV", "hard.csv", rows_of(load_bbq), [seeds.BBQ_CSV], as_csv),
    target("SQuAD", "squad.json", squad, [seeds.SQUAD]),
    target("pairs", "pairs.jsonl", pairs, [seeds.PAIRS], as_jsonl),
)
