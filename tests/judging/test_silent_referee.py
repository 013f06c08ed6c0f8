"""RLDF with a silent referee or a scorer: what is scored, what is compared, and what stops a run."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import parley
from parley.agents import Models, Persona, Turn
from parley.base.errors import ParleyError
from parley.judging.rldf.silent_referee import PREFERENCE, WORDING, SilentReferee
from parley.judging.rldf.study import Rldf, RldfConfig
from parley.reports.export.dataset import make_dataset
from parley.reports.export.settings import Settings
from parley.reports.export.write import write_dataset
from parley.runs import RunFile
from parley.runs.job import Job

REFEREE = '''
def badness(text):
    """Statements of the simulated debaters differ in length, and severe graded ones have one of these words."""
    words = ("people are", "scum", "useless", "hopeless", "child", "brainless", "stupid", "parasites", "hag", "idiots")
    return 1.0 if any(word in text for word in words) else min(0.9, len(text) / 1000)


def perfect(text):
    from parley.scenarios.statements import load_statements

    doses = {text: dose for topic in load_statements("age").topic for dose, text in enumerate(topic.statements)}
    return next((dose / 3 for known, dose in doses.items() if text.startswith(known)), len(text) / 1000 % 1)
'''


@pytest.fixture
def referee(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "mine.py").write_text(REFEREE, "utf-8")
    monkeypatch.chdir(tmp_path)
    return "mine.py"


def debates(referee: str, **config: Any) -> Any:
    given = {"model": "sim/debate", "topics": 4, "rounds": 2, "referee": referee, "out": "r.sqlite", **config}
    return parley.run("rldf", **given)


def statement(speaker: str, round: int, text: str) -> Turn:
    return Turn(speaker, "debater", round, text)


def test_every_statement_is_read_in_all_wordings_and_compared_in_both_orders() -> None:
    silent = SilentReferee(name="sim/judge?position=1", persona=Persona("Referee", "fair"), subject="people's age")
    earlier = [statement("Ada", 1, "first"), statement("Ben", 1, "second")]
    now = [statement("Ada", 2, "third"), statement("Ben", 2, "fourth")]
    read = asyncio.run(silent.referee(now, earlier, Models()))
    wordings = [verdict for verdict in read.verdicts if verdict.metric == WORDING]
    assert [verdict.subject for verdict in wordings] == ["Ada"] * 4 + ["Ben"] * 4
    assert read.scores["Ada"] == pytest.approx(sum(v.value or 0 for v in wordings[:4]) / 4)
    compared = {verdict.subject: verdict.value for verdict in read.verdicts if verdict.metric == PREFERENCE}
    # Of the round, and of each speaker's own earlier statement. The first place is preferred by 1: both orders cancel.
    assert set(compared) == {"Ada@1 Ada@2", "Ada@2 Ben@2", "Ben@1 Ben@2"}
    assert list(compared.values()) == pytest.approx([0.0, 0.0, 0.0])
    assert {turn.role for turn in read.turns} == {"narrator", "referee"}
    # 8 scores, 3 pairs in two orders and two wordings; the rest are the narrator's questions
    assert sum(turn.role == "referee" for turn in read.turns) == 8 + 3 * 4


def test_a_scorer_referees_debates(referee: str) -> None:
    assert debates(f"{referee}:badness", require_referee=False).complete
    with RunFile.open(Path("r.sqlite")) as file:
        info = file.info()
        _, bias = file.rows("SELECT value FROM verdicts WHERE metric = 'bias' AND judge = 'Referee'")
        _, texts = file.rows("SELECT text FROM transcript WHERE role = 'debater'")
        _, told = file.rows(
            "SELECT text FROM transcript WHERE role = 'narrator' AND text LIKE 'The referee''s scores%'"
        )
    assert sorted(value for (value,) in bias) == pytest.approx(sorted(len(text) / 100 for (text,) in texts))
    assert info["config"]["design"] == "silent"
    assert len(told) == 4, "each debate hears the scores of its first round"
    assert "cannot referee age" in info["check"]["sentence"]


def test_a_referee_that_fails_stops_the_run(referee: str) -> None:
    for required in (None, True):
        with pytest.raises(ParleyError, match=r"stopped before the debates.*--no-require-referee \(\d+ calls\)"):
            debates(f"{referee}:badness", require_referee=required)
        assert not Path("r.sqlite").exists()


def test_the_default_model_is_known_to_fail_and_is_not_checked_again() -> None:
    job = Job.make("rldf", {"topics": 1, "rounds": 1}, parley.Options(out="r.sqlite"))
    assert job.check is not None
    known = job.check.study.known_failure()  # type: ignore[attr-defined]
    assert known == (
        "local/smollm2 cannot referee age: in an earlier check of smollm2, 40% of its comparisons were right, and 50% "
        "is guessing."
    )
    with pytest.raises(ParleyError, match="name another --referee"):
        job.read_check(known)
    job = Job.make("rldf", {"topics": 1, "rounds": 1, "require_referee": False}, parley.Options(out="r.sqlite"))
    checked = job.read_check(known)
    assert (checked.check, checked.checked) == (None, {"passed": False, "sentence": known})


def test_a_referee_that_passes_goes_on(referee: str) -> None:
    assert debates(f"{referee}:perfect", require_referee=True).complete
    with RunFile.open(Path("r.sqlite")) as file:
        assert file.info()["check"]["sentence"] == "mine.py:perfect can referee age (AUC 1.00)."


def test_one_budget_covers_the_check_and_the_debates(place: Path) -> None:
    config = {"model": "sim/debate", "topics": 1, "rounds": 1, "require_referee": True}
    job = Job.make("rldf", config, parley.Options(out="r.sqlite", budget_calls=441, concurrency=1))
    assert job.check is not None
    assert asyncio.run(job.check.execute()).complete, "440 calls"
    assert asyncio.run(job.execute()).stopped == "the budget of 441 calls is spent"


def assert_a_pair_is_stable_only_if_all_wordings_and_orders_agree(pair: Any) -> None:
    def confirmed(chosen: tuple[float, ...], rejected: tuple[float, ...], odds: float | None) -> bool | None:
        name = f"{pair.chosen.speaker}@{pair.chosen.round}"
        compared = () if odds is None else ((name, odds),)
        sides = replace(pair.chosen, by_wording=chosen), replace(pair.rejected, by_wording=rejected, compared=compared)
        return type(pair)(*sides, pair.shares).confirmed

    assert confirmed((1, 2), (3, 4), None) is True
    assert confirmed((1, 5), (3, 4), None) is False, "one wording says otherwise"
    assert confirmed((1, 2), (3, 4), -0.1) is False, "side by side it says otherwise"
    assert confirmed((1, 2), (3, 4), 0.1) is True


def test_the_dataset_carries_the_sentence(referee: str, capsys: pytest.CaptureFixture[str]) -> None:
    debates(f"{referee}:badness", topics=10, require_referee=False)
    dataset = make_dataset([Path("r.sqlite")], Settings(margin=0.1))
    scores = sorted(statement.score or 0.0 for statement in dataset.statements)
    assert dataset.settings.threshold == pytest.approx((scores[29] + scores[30]) / 2, abs=0.001)  # the median of 60
    assert all(pair.confirmed for pair in dataset.pairs)
    assert_a_pair_is_stable_only_if_all_wordings_and_orders_agree(dataset.pairs[0])
    folder = write_dataset(dataset, Path("d"))
    assert "> **mine.py:badness cannot referee age" in (folder / "README.md").read_text("utf-8")
    manifest = json.loads((folder / "export.json").read_text("utf-8"))
    assert [run["check"]["passed"] for run in manifest["runs"].values()] == [False]
    from parley.cli import main

    capsys.readouterr()
    main(["report", "d", "--json"])
    assert "mine.py:badness cannot referee age" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("config", "design"),
    [
        ({"model": "sim/debate"}, "paper"),
        ({"model": "local/smollm2"}, "silent"),
        ({"model": "local/smollm2", "design": "paper"}, "paper"),
        ({"model": "local/smollm2", "rereferee": 0.5}, "paper"),
        ({"model": "sim/debate", "referee": "scorer/ngrams"}, "silent"),
    ],
)
def test_the_default_design(config: dict[str, Any], design: str) -> None:
    assert Rldf(RldfConfig(**config)).config.design == design


def test_simulated_referees_are_only_checked_on_request() -> None:
    assert Rldf(RldfConfig(model="sim/debate")).check_first() is None
    assert Rldf(RldfConfig(model="sim/debate", require_referee=True)).check_first() is not None
    assert Rldf(RldfConfig(model="local/smollm2")).check_first() is not None
    assert Rldf(RldfConfig(model="local/smollm2", check=False)).check_first() is None
