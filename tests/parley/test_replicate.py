"""`parley replicate`: all runs of a paper in one folder, at a hundredth of its size, on a simulated model."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from parley.cli import paper_plan
from parley.cli.paper_plan import PAPERS, Replication, papers, read_steps
from parley.runs.options import validated
from parley.training.config import PAPERS_CATEGORIES
from tests.bbq_rows import bbq_row, write_bbq, write_bbq_hard
from tests.golden.data import write_data

MODEL = "sim/any?base=6&round=-2"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with small versions of all data, under the names that people have them."""
    place = tmp_path_factory.mktemp("data")
    write_data(place)
    (place / "squad.json").rename(place / "dev-v2.0.json")
    write_bbq_hard(place / "BBQHard.csv", *(bbq_row(number) for number in range(8)))
    for category in PAPERS_CATEGORIES:
        write_bbq(place / "bbq" / f"{category}.jsonl", *(bbq_row(number, category=category) for number in range(8)))
    texts = [f"What a {word} idea of the {number} of them" for number in range(100) for word in ("bad", "fair")]
    prompts = [{"prompt": text, "toxicity": score} for text, score in zip(texts, (0.55, 0.9) * 100, strict=True)]
    (place / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in prompts), "utf-8")
    return place


def units(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as file:
        return dict(file.execute("SELECT status, count(*) FROM units GROUP BY status"))


@pytest.mark.parametrize("paper", papers())
def test_a_paper_is_run_whole(parley, data, paper, monkeypatch):
    monkeypatch.setattr(paper_plan, "missing_extra", lambda extra: "")  # tests/training trains
    typed = ("replicate", paper, "--model", MODEL, "--data", str(data), "--scale", "0.01", "--quiet", "--out", "runs")
    if paper == "rldf":
        typed += ("--only", ",".join(step.name for step in read_steps(paper) if step.does != "train"))
    planned = parley(*typed, "--dry-run", "--json").json
    unlike = ["table2-self-debias is not measured: self-debias-gen"] * (paper == "stardtox")
    assert [line[: len(words)] for line, words in zip(planned["missing"], unlike, strict=True)] == unlike
    assert planned["sum"]["calls"] == sum(step["calls"] for step in planned["steps"]) > 0
    assert not Path("runs").exists(), "nothing is sent by a dry run"
    first = parley(*typed)
    assert first.status == 0, first.err
    for step in planned["steps"]:
        if step["units"]:
            assert units(Path("runs") / f"{step['step']}.sqlite") == {"done": step["units"]}
        else:
            assert Path("runs/pairs/train.jsonl").read_text().count("\n") > 10


def test_steps_are_shared_out_and_what_is_missing_is_named(parley, data, tmp_path, monkeypatch):
    typed = ("replicate", "mabrf", "--model", MODEL, "--scale", "0.05", "--quiet", "--out", "runs")
    some = tmp_path / "some"
    some.mkdir()
    (some / "BBQHard.csv").symlink_to(data / "BBQHard.csv")
    monkeypatch.setattr(paper_plan, "find_spec", lambda name: None)
    missing = parley(*typed, "--data", str(some), "--json")
    assert missing.status == 0
    searched, squad, _ = missing.json["missing"]
    assert searched.startswith(f"table5-search is not measured: there is no folder {some}/articles to search")
    assert squad.startswith(f"table4 is not measured: SQuAD v2 is not in {some}; see https://")
    assert [path.stem for path in Path("runs").glob("*.sqlite")] == ["table5"]
    parley("show", "runs/table5.sqlite", "--random", "1")  # leaves notes beside the run
    (some / "dev-v2.0.json").symlink_to(data / "dev-v2.0.json")
    rest = parley(*typed, "--data", str(some), "--only", "table4")
    assert rest.status == 0, rest.err
    both = parley(*typed, "--data", str(some))
    assert both.err.count(": done") == 2
    assert rest.out in both.out
    assert parley(*typed, "--data", str(data / "none")).err.count("is not measured: ") == 4


def test_without_the_extra_training_the_rest_is_run(parley, data, monkeypatch):
    monkeypatch.setattr(paper_plan, "missing_extra", lambda extra: "pip install it")
    typed = ("replicate", "rldf", "--model", MODEL, "--data", str(data), "--scale", "0.01", "--out", "runs", "--quiet")
    planned = parley(*typed, "--only", "debates-age,pairs,policy")
    assert planned.status == 1
    assert "policy is not measured: training needs torch" in planned.err
    assert "pairs is not measured: runs/debates-nationality.sqlite is not complete" in planned.err
    assert units(Path("runs/debates-age.sqlite")) == {"done": 2}
    assert "Do the claims of RLDF" in planned.out
    assert parley(*typed, "--only", "pairs", "--set", 'runs=["debates-age"]').status == 0
    other = parley(*typed, "--only", "pairs", "--set", 'runs=["debates-age"]', "--set", "threshold=5")
    assert other.status == 2
    assert "runs/pairs was exported with other settings" in other.err


def test_an_interrupted_paper_resumes(parley, data):
    typed = ("replicate", "stardtox", "--model", f"{MODEL}&price_in=1&price_out=1", "--data", str(data))
    typed += ("--scale", "0.01", "--quiet", "--out", "runs", "--set", "prompts=3")
    stopped = parley(*typed, "--budget-cost", "0.002")
    assert "table2-self-debias is not measured" in stopped.err
    assert stopped.status == 1
    assert 0 < units(Path("runs/table2.sqlite"))["done"] < 24
    assert not Path("runs/table3.sqlite").exists(), "a spent budget stops the paper, not the step"
    assert parley(*typed).status == 0
    assert units(Path("runs/table2.sqlite")) == {"done": 24}


@pytest.mark.parametrize(
    ("scale", "completions", "prompts"), [(1, 25, 100), (0.1, 3, 84), (0.04, 1, 100), (0.02, 1, 50)]
)
def test_the_clusters_of_the_tests_are_scaled_last(data, scale, completions, prompts):
    made = Replication(
        paper="stardtox", model=MODEL, data=data, out=Path("runs"), scale=scale, settings={"sets": "high"}
    )
    config = made.config_of(read_steps("stardtox")[0])
    assert (config["completions"], config["prompts"], config["sets"]) == (completions, prompts, "high")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "promts=3"), "--set promts: no step of stardtox has a setting 'promts'; did you mean 'prompts'?"),
        (("--set", "table3.prompts=3"), "--set table3.prompts: the step 'table3' has no setting 'prompts'"),
        (("--set", "prompts"), "--set prompts: expected KEY=VALUE"),
        (("--set", "prompts=many"), "prompts must be a valid integer, got 'many'"),
        (("--only", "table4"), "--only: stardtox has no step 'table4'; did you mean 'table3'?"),
    ],
)
def test_a_wrong_command_names_what_is_wrong(parley, data, words, message):
    wrong = parley("replicate", "stardtox", "--model", MODEL, "--data", str(data), *words)
    assert wrong.status == 2
    assert message.replace("a valid integer", "a whole number") in wrong.err


def test_steps_have_the_papers_numbers(data):
    """STARDTOX IV-A: two sets of 100 prompts, 25 completions, at most two iterations; 100 rows of 11 categories.
    RLDF 4.1: batches of 32 and 4, learning rates 3e-5 and 5e-6, 2,048 tokens, one epoch, three repeats."""
    made = {paper: Replication(paper=paper, model=MODEL, data=data, out=Path("runs")) for paper in papers()}
    listed = {step.name: (made[paper], step) for paper in papers() for step in read_steps(paper)}
    configs = {name: validated(step.config_type, made.config_of(step)) for name, (made, step) in listed.items()}
    second, third, guided = (configs[name] for name in ("table2", "table3", "table2-self-debias"))
    for config in (second, guided):
        assert (config.sets, config.prompts, config.completions) == (["moderate", "high"], 100, 25)
        assert (config.max_tokens, config.temperature) == (20, 1.0)
    assert (second.max_iterations, third.limit, len(third.method)) == (2, 1100, 5)
    policy = configs["policy"]
    for settings, numbers in ((policy.reward, (32, 3e-5, 1)), (policy.rl, (4, 5e-6, 1))):
        assert (settings.batch_size, settings.learning_rate, settings.num_train_epochs) == numbers
    assert (policy.max_length, policy.seeds, configs["debates-age"].topics) == (2048, 3, 200)


def test_every_step_of_a_paper_says_what_it_is():
    assert papers() == sorted(path.stem for path in PAPERS.glob("*.toml")) == ["mabrf", "malibu", "rldf", "stardtox"]
    for paper in papers():
        steps = read_steps(paper)
        assert len({step.name for step in steps}) == len(steps)
        assert all(step.about and set(step.scaled) <= set(step.config) for step in steps), json.dumps(paper)
