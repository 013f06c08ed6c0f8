"""Targets: the files that users provide (configs, suites, datasets, predictions, pairs) and command-line flags.

Accepted rows are counted: the number must match the file, so that none is dropped silently.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from parley.agents import load_personas
from parley.agents.models.registry import client_class
from parley.agents.models.request import split_name
from parley.agents.search.documents import passages
from parley.cli.flags import given, read_config, split_config
from parley.cli.run import parser_of
from parley.imports.imported import read_log
from parley.imports.predictions import _bbq_answers, _object
from parley.judging.config import read_settings
from parley.judging.rldf.roles import load_bias
from parley.judging.scoring.rubrics import load_rubric
from parley.judging.scoring.study import RubricScores, ScoringConfig
from parley.judging.texts import read_lines
from parley.reports.labels.files import LabelFileError, read_label_file
from parley.runs import measure
from parley.runs.job import make_study
from parley.runs.options import Options, validated
from parley.scenarios import check_ballot_wordings, load_attempts, load_ballot_wordings, load_suite, load_topics
from parley.scenarios.bbq import load as load_bbq
from parley.scenarios.checks import check_suite
from parley.scenarios.identities import read_identities
from parley.scenarios.rtp import load as load_rtp
from parley.scenarios.squad import load as load_squad
from parley.scenarios.squad import sample
from parley.scenarios.topics import near_duplicates, topic_id
from parley.training.config import TrainConfig
from parley.training.pairs import read_pairs, read_sft
from tests.fuzz import seeds
from tests.fuzz.checking import Rejected, Target
from tests.fuzz.replies import ROW
from tests.fuzz.strategies import VALUES, as_csv, as_json, as_jsonl, as_toml, as_yaml, choose, edited_file, edited_text

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


def shipped(package: str, *path: str) -> Any:
    """A TOML file of the package."""
    return tomllib.loads(files(package).joinpath(*path).read_text("utf-8"))


def nonempty_lines(path: Path) -> int:
    return sum(bool(line.strip()) for line in path.read_bytes().split(b"\n"))


def config(path: Path) -> None:
    table = read_config(path)
    table.pop("study", None)
    study, options = split_config(table, _MALIBU, Options, path.name)
    validated(Options, options)
    measure(make_study("malibu", study))


def flags(arguments: list[str]) -> None:
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            parsed = _PARSER.parse_args(["malibu", *arguments])
    except SystemExit as end:
        raise Rejected(errors.getvalue() or f"status {end.code}") from None
    validated(Options, given(parsed, Options))
    measure(make_study("malibu", given(parsed, _MALIBU)))


FLAGS = [seeds.FLAGS[:8], seeds.FLAGS[8:14], ["--suite", "tiny"]]


@st.composite
def edited_flags(draw: st.DrawFn) -> list[str]:
    arguments = list(choose(draw, FLAGS))
    for _ in range(draw(st.integers(1, 3))):
        index = draw(st.integers(0, len(arguments) - 1))
        replaced = st.sampled_from(seeds.FLAGS) | st.sampled_from(VALUES).map(str) | edited_text([arguments[index]])
        arguments[index] = draw(replaced)
    return arguments[: draw(st.integers(1, len(arguments)))]


def model_name(name: str) -> None:
    model, options = split_name(name)
    client_class(model).parse_options(model, options)
    read_settings([name])


def rubric(path: Path) -> None:
    loaded = load_rubric(str(path))
    assert loaded.text()
    assert len(loaded.names) == len(loaded.metric) > 0


def personas(path: Path) -> None:
    assert load_personas(path), "an empty panel"


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


def attempts(path: Path) -> None:
    for attempt in load_attempts(str(path)).attempt:
        f"{attempt.in_response('Yes. No.', 9, '{}')}{attempt.control_in('Yes. No.')}".encode()


def topics(path: Path) -> None:
    loaded = load_topics(str(path))
    assert len(loaded) == len({topic_id(topic) for topic in loaded}), "two topics share an id"
    near_duplicates(loaded)


def bias(path: Path) -> None:
    for role in load_bias(str(path)).role:
        role.persona()
        role.gives_away("As a 60-year-old, I think so.")


def bbq(path: Path) -> None:
    data = load_bbq(path)
    if path.suffix == ".jsonl":
        assert len(data.rows) == sum(bool(line.strip()) for line in path.read_bytes().splitlines())
    for row in data.rows:
        f"{row.scenario}{row.context}{row.question}".encode()


def bbq_metadata(path: Path) -> None:
    load_bbq(path.parent)


def squad(path: Path) -> None:
    data = load_squad(path)
    sample(data.questions, 3, 0)
    for question in data.questions:
        json.dumps(question, ensure_ascii=False).encode()


def rtp(path: Path) -> None:
    data = load_rtp(path)
    assert len(data.rows) == nonempty_lines(path)
    for row in data.rows:
        f"{row.id}{row.text}".encode()


def predictions(path: Path) -> None:
    for row, found in _bbq_answers(path, read_log(path), [ROW]):
        assert found, row


def texts(path: Path) -> None:
    text_column, score_column = (None, None) if path.suffix == ".txt" else ("text", "score")
    for line in read_lines(str(path), text_column, score_column):
        line.text.encode()


def rubric_texts(path: Path) -> None:
    study = RubricScores(ScoringConfig(data=str(path), by="group"))
    study.sources()
    measure(study)
    for unit in study.plan():
        json.dumps(dict(unit.facets), ensure_ascii=False).encode()


def pairs(path: Path) -> None:
    assert read_pairs(TrainConfig(data=str(path), min_pairs=2, rounds=3, roles=None)).train


def labels(path: Path) -> None:
    rows, problems = read_label_file(path)
    for row in rows:
        json.dumps(asdict(row), ensure_ascii=False).encode()
    if problems:
        raise LabelFileError(path, problems)


_MALIBU = make_study("malibu", {"suite": "tiny"}).Config
_PARSER = parser_of("malibu", everything=True)

TARGETS = (
    target("config, TOML", "c.toml", config, [seeds.CONFIG], as_toml),
    target(
        "config, YAML",
        "c.yaml",
        config,
        [seeds.CONFIG],
        as_yaml,
        texts=(seeds.BOMB, seeds.MERGE, "rounds: 2001-99-99", "rounds: 0b_"),
    ),
    Target("flags", FLAGS, edited_flags(), flags),
    Target("model name", seeds.MODELS, edited_text(seeds.MODELS), model_name),
    target(
        "personas",
        "p.toml",
        personas,
        [{"persona": [{"name": "Ada", "about": "You are Ada.", "model": "sim/x"}]}],
        as_toml,
    ),
    target("rubric", "r.toml", rubric, [shipped("parley.judging", "rubrics", "four.toml")], as_toml),
    target("bias roles", "b.toml", bias, [shipped("parley.judging", "personas", "rldf_age.toml")], as_toml),
    target("identities", "i.toml", read_identities, [seeds.IDENTITIES], as_toml),
    target("injection attempts", "a.toml", attempts, [seeds.ATTEMPTS], as_toml),
    target("suite", "s.toml", suite, [seeds.SUITE], as_toml),
    target("wordings", "w.toml", wordings, [seeds.WORDINGS], as_toml),
    target(
        "topics",
        "t.txt",
        topics,
        [],
        texts=["# mine\nShould older people drive at night?\nWho should care for whom?\n"],
    ),
    target("BBQ, JSONL", "bbq.jsonl", bbq, [seeds.BBQ], as_jsonl),
    target("BBQ, CSV", "hard.csv", bbq, [seeds.BBQ_CSV], as_csv),
    target("BBQ metadata", "additional_metadata.csv", bbq_metadata, [seeds.METADATA], as_csv),
    target("SQuAD", "squad.json", squad, [seeds.SQUAD], as_json),
    target("SQuAD predictions", "sp.json", _object, [{"q1": "1066", "q2": None}], as_json),
    target("RealToxicityPrompts", "rtp.jsonl", rtp, [seeds.RTP], as_jsonl),
    target("BBQ predictions", "bp.jsonl", predictions, [seeds.PREDICTIONS], as_jsonl),
    target("texts, JSONL", "x.jsonl", texts, [seeds.TEXTS], as_jsonl),
    target("texts, CSV", "y.csv", texts, [[["text", "score"], ["A kind word.", "0.5"]]], as_csv),
    target("texts, lines", "z.txt", texts, [], texts=["One.\nTwo.\n\x0cThree.\n"]),
    target("texts for rubrics", "rubric.jsonl", rubric_texts, [seeds.TEXTS], as_jsonl),
    target("pairs", "pairs.jsonl", pairs, [seeds.PAIRS], as_jsonl),
    target(
        "SFT rows",
        "sft.jsonl",
        read_sft,
        [[{"prompt": seeds.PAIRS[0]["prompt"], "completion": seeds.PAIRS[0]["chosen"]}]],
        as_jsonl,
    ),
    target("labels, CSV", "labels.csv", labels, [seeds.LABELS_CSV], as_csv),
    target("labels, JSON", "labels.json", labels, [seeds.LABEL_STUDIO, seeds.ARGILLA], as_json),
    target("labels, JSONL", "labels.jsonl", labels, [seeds.LABELS], as_jsonl),
    target("documents, JSONL", "docs.jsonl", lambda path: list(passages(path.parent)), [seeds.DOCUMENTS], as_jsonl),
    target("documents, HTML", "page.html", lambda path: list(passages(path.parent)), [], texts=[seeds.HTML]),
)


# The rows that the metadata target describes.
(FOLDER / "additional_metadata" / "rows.jsonl").write_text(as_jsonl(seeds.BBQ))
