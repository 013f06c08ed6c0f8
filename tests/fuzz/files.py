"""Targets: the files people bring (configs, suites, datasets, predictions, pairs) and the flags they type.

Accepted rows are counted against the file: none is dropped without a word.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from parley.agents import load_personas
from parley.agents.models.registry import client_class, split_name
from parley.agents.search.documents import passages
from parley.cli.flags import given, read_config, split_config
from parley.cli.run import _parser
from parley.cli.score_squad import _read_table
from parley.execute import Options, make_study
from parley.judging.methods import read_settings
from parley.judging.rldf.roles import load_bias
from parley.judging.scoring.rubrics import load_rubric
from parley.judging.scoring.study import RubricScores, ScoringConfig
from parley.predictions import read_predictions
from parley.runs import measure
from parley.scenarios import load_suite, load_topics
from parley.scenarios.bbq import load as load_bbq
from parley.scenarios.checks import check_suite
from parley.scenarios.identities import read_identities
from parley.scenarios.rtp import load as load_rtp
from parley.scenarios.squad import load as load_squad
from parley.scenarios.squad import sample
from parley.scenarios.topics import near_duplicates, topic_id
from parley.texts import read_lines
from parley.training.config import TrainConfig
from parley.training.pairs import read_pairs, read_sft
from tests.fuzz import mutation, seeds
from tests.fuzz.loop import Rejected, Target
from tests.fuzz.replies import ROW

_FOLDER = tempfile.TemporaryDirectory(prefix="parley-fuzz-")
PLACE = Path(_FOLDER.name)


def at(name: str, feed: Callable[[Path], object]) -> Callable[[bytes], object]:
    """The input as a file of that name, alone in a folder."""
    path = PLACE / name.partition(".")[0] / name
    path.parent.mkdir(exist_ok=True)

    def write(content: bytes) -> object:
        path.write_bytes(content)
        return feed(path)

    return write


Write = Callable[[Any], str]


def made(trees: Sequence[Any], write: Write) -> Callable[[random.Random, Sequence[bytes]], bytes]:
    """Mutated structure, mutated text, or mutated bytes."""

    def make(rng: random.Random, kept: Sequence[bytes]) -> bytes:
        kind = rng.random()
        if trees and kind < 0.45:
            with contextlib.suppress(Exception):  # what its writer cannot write is made otherwise
                return write(mutation.tree(rng, rng.choice(trees))).encode("utf-8", "surrogatepass")
        chosen = rng.choice(kept)
        if kind < 0.9:
            return mutation.text(rng, [chosen.decode("utf-8", "surrogateescape")]).encode("utf-8", "surrogatepass")
        return mutation.raw(rng, chosen)

    return make


def target(
    name: str,
    file: str,
    feed: Callable[[Path], object],
    trees: Sequence[Any],
    write: Write,
    *more: str,
    weight: float = 1.0,
) -> Target:
    begun = [write(one).encode() for one in trees] + [one.encode() for one in more]
    return Target(name, begun, made(trees, write), at(file, feed), weight)


def lines(rows: Any) -> str:
    return "".join(mutation.as_json(row) + "\n" for row in rows) if isinstance(rows, list) else mutation.as_json(rows)


def shipped(*place: str) -> Any:
    return tomllib.loads(files(place[0]).joinpath(*place[1:]).read_text("utf-8"))


def written(path: Path) -> int:
    """Lines of a file that hold something."""
    return sum(bool(line.strip()) for line in path.read_bytes().split(b"\n"))


def config(path: Path) -> None:
    table = read_config(path)
    table.pop("study", None)
    study, options = split_config(table, _MALIBU, Options, path.name)
    with_options(options)
    measure(make_study("malibu", study))


def with_options(options: dict[str, Any]) -> None:
    from pydantic import ValidationError

    from parley.agents import ConfigError
    from parley.execute import explain

    try:
        Options.model_validate(options)
    except ValidationError as error:
        raise ConfigError(explain(error, Options)) from None


def flags(words: list[str]) -> None:
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint), contextlib.redirect_stdout(io.StringIO()):
            parsed = _PARSER.parse_args(words)
    except SystemExit as end:
        raise Rejected(complaint.getvalue() or f"status {end.code}") from None
    with_options(given(parsed, Options))
    measure(make_study("malibu", given(parsed, _MALIBU)))


def typed(rng: random.Random, kept: Sequence[list[str]]) -> list[str]:
    words = list(rng.choice(kept))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(words))
        words[at] = rng.choice(
            (mutation.text(rng, [words[at]]), rng.choice(seeds.FLAGS), str(rng.choice(mutation.VALUES)))
        )
    return words[: rng.randint(1, len(words))]


def model_name(name: str) -> None:
    plain, options = split_name(name)
    client_class(plain).parse_options(plain, options)
    read_settings([name])


def names(seeds: Sequence[str]) -> Target:
    return Target("model name", seeds, mutation.text, model_name)


def rubric(path: Path) -> None:
    found = load_rubric(str(path))
    assert found.text()
    assert len(found.names) == len(found.metric) > 0


def personas(path: Path) -> None:
    assert load_personas(path), "a panel of nobody"


def suite(path: Path) -> None:
    found, _ = load_suite(str(path))
    check_suite(found)
    found.digest()
    found.to_toml()


def topics(path: Path) -> None:
    found = load_topics(str(path))
    assert len(found) == len({topic_id(one) for one in found}), "two topics share an id"
    near_duplicates(found)


def bias(path: Path) -> None:
    found = load_bias(str(path))
    for role in found.role:
        role.persona()
        role.gives_away("As a 60-year-old, I think so.")


def bbq(path: Path) -> None:
    found = load_bbq(path)
    if path.suffix == ".jsonl":
        assert len(found.rows) == sum(bool(line.strip()) for line in path.read_bytes().splitlines())
    for row in found.rows:
        f"{row.scenario}{row.context}{row.question}".encode()


def bbq_metadata(path: Path) -> None:
    load_bbq(path.parent)


def squad(path: Path) -> None:
    found = load_squad(path)
    sample(found.questions, 3, 0)
    for one in found.questions:
        json.dumps(one, ensure_ascii=False).encode()


def rtp(path: Path) -> None:
    found = load_rtp(path)
    assert len(found.rows) == written(path)
    for row in found.rows:
        f"{row.id}{row.text}".encode()


def predictions(path: Path) -> None:
    found = read_predictions(path, [ROW])
    assert sum(found.how.values()) == len(found.rows)


def texts(path: Path) -> None:
    for line in read_lines(
        str(path), None if path.suffix == ".txt" else "text", None if path.suffix == ".txt" else "score"
    ):
        line.text.encode()


def rubric_texts(path: Path) -> None:
    study = RubricScores(ScoringConfig(file=str(path), by="group"))
    study.sources()
    measure(study)
    for unit in study.plan():
        json.dumps(dict(unit.facets), ensure_ascii=False).encode()


def pairs(path: Path) -> None:
    found = read_pairs(TrainConfig(data=str(path), min_pairs=2, rounds=3, roles=None))
    assert found.train


_MALIBU = make_study("malibu", {"suite": "quick"}).Config
_PARSER = _parser("malibu")

TARGETS = (
    target("config, TOML", "c.toml", config, [seeds.CONFIG], mutation.as_toml, weight=0.5),
    target(
        "config, YAML",
        "c.yaml",
        config,
        [seeds.CONFIG],
        mutation.as_yaml,
        seeds.BOMB,
        seeds.MERGE,
        "rounds: 2001-99-99",
        "rounds: 0b_",
        weight=0.5,
    ),
    Target("flags", [seeds.FLAGS[:8], seeds.FLAGS[8:14], ["--suite", "quick"]], typed, flags, 0.5),
    names(
        [
            "openai/gpt-4o?temperature=0.2&base_url=http://h/v1",
            "sim/judge?noise=1&female=+0.5",
            "local/smollm2",
            "server/x",
        ]
    ),
    target(
        "personas",
        "p.toml",
        personas,
        [{"persona": [{"name": "Ada", "about": "You are Ada.", "model": "sim/x"}]}],
        mutation.as_toml,
    ),
    target("rubric", "r.toml", rubric, [shipped("judging", "rubrics", "four.toml")], mutation.as_toml),
    target("bias roles", "b.toml", bias, [shipped("judging", "personas", "rldf_age.toml")], mutation.as_toml),
    target("identities", "i.toml", read_identities, [{"categories": {"age": ["young", "old"]}}], mutation.as_toml),
    target("suite", "s.toml", suite, [seeds.SUITE], mutation.as_toml),
    target(
        "topics", "t.txt", topics, [], lines, "# mine\nShould older people drive at night?\nWho should care for whom?\n"
    ),
    target("BBQ, JSONL", "bbq.jsonl", bbq, [seeds.BBQ], lines),
    target("BBQ, CSV", "hard.csv", bbq, [seeds.BBQ_CSV], mutation.as_csv),
    target("BBQ metadata", "additional_metadata.csv", bbq_metadata, [seeds.METADATA], mutation.as_csv),
    target("SQuAD", "squad.json", squad, [seeds.SQUAD], mutation.as_json),
    target("SQuAD predictions", "sp.json", _read_table, [{"q1": "1066", "q2": None}], mutation.as_json),
    target("RealToxicityPrompts", "rtp.jsonl", rtp, [seeds.RTP], lines),
    target("BBQ predictions", "bp.jsonl", predictions, [seeds.PREDICTIONS], lines),
    target("texts, JSONL", "x.jsonl", texts, [seeds.TEXTS], lines),
    target("texts, CSV", "y.csv", texts, [[["text", "score"], ["A kind word.", "0.5"]]], mutation.as_csv),
    target("texts, lines", "z.txt", texts, [], lines, "One.\nTwo.\n\x0cThree.\n"),
    target("texts for rubrics", "rubric.jsonl", rubric_texts, [seeds.TEXTS], lines),
    target("pairs", "pairs.jsonl", pairs, [seeds.PAIRS], lines),
    target(
        "SFT rows",
        "sft.jsonl",
        read_sft,
        [[{"prompt": seeds.PAIRS[0]["prompt"], "completion": seeds.PAIRS[0]["chosen"]}]],
        lines,
    ),
    target("documents, JSONL", "docs.jsonl", lambda path: list(passages(path.parent)), [seeds.DOCUMENTS], lines),
    target("documents, HTML", "page.html", lambda path: list(passages(path.parent)), [], lines, seeds.HTML),
)


def beside_metadata() -> None:
    """The rows that the metadata is about."""
    folder = PLACE / "additional_metadata"
    folder.mkdir(exist_ok=True)
    (folder / "rows.jsonl").write_text(lines(seeds.BBQ))


beside_metadata()
