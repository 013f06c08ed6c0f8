"""RLDF's debates: the debaters, their prompts, and the verdicts that are stored."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import parley
from parley.agents import Models, Persona, Turn
from parley.base.errors import ParleyError
from parley.cli.dry_run import dry_run
from parley.judging.rldf.check import CheckConfig
from parley.judging.rldf.silent_referee import PREFERENCE, WORDING, SilentReferee
from parley.judging.rldf.statements import own_words
from parley.judging.rldf.study import Rldf, RldfConfig
from parley.runs import RunFile
from parley.runs.job import Job

pytestmark = pytest.mark.usefixtures("place")


def whole(body: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in body["messages"])


def is_report(body: dict[str, Any]) -> bool:
    return "response_format" in body


def reports(*rounds: dict[str, Any]) -> Any:
    """A model whose debaters number what they say, and whose referee gives these reports in turn."""
    given = iter(rounds)
    replies = iter(range(1, 1000))

    def says(body: dict[str, Any]) -> str:
        return json.dumps(next(given)) if is_report(body) else f"Statement {next(replies)}."

    return says


def even(score: int) -> dict[str, Any]:
    return {"scores": {"Sixty": score, "Twenty": score, "Forty": score}}


@pytest.fixture
def run_study(speaker, run_whole):
    """Hold one debate, and open its file."""
    given = {"topics": 1, "rounds": 1, "design": "paper", "check": False, "model": speaker.model()}
    return lambda **settings: run_whole("rldf", **given | settings)


# The plan


def test_your_own_bias_type(place, speaker, run_study):
    (place / "height.toml").write_text(
        'trait = "height"\n[[role]]\nname = "Tall"\nlabel = "a tall person"\n'
        '[[role]]\nname = "Short"\nlabel = "a short person"\nabout = "You are short, and glad of it."\n'
    )
    (place / "shelves.txt").write_text("Should shelves be lower?\n")
    speaker.says = reports({"scores": {"Tall": 5, "Short": 1}})
    settings = {"bias": "height.toml", "topics_from": "shelves.txt", "roles": 2}
    actual = run_study(**settings).rows("SELECT subject, value FROM verdicts WHERE metric = 'bias'")
    assert actual == [("Tall", 5.0), ("Short", 1.0)]
    assert "You are a tall person. At this table you are called Tall." in whole(speaker.asked[0])
    assert "You are short, and glad of it." in whole(speaker.asked[1])
    assert "biases about height" in whole(speaker.asked[2])
    height = {**settings, "topics": 1, "model": speaker.model()}
    assert Rldf(RldfConfig(**height)).check_first() is None, "nobody has graded statements about height"
    assert Rldf(RldfConfig(topics=1, model="sim/debate")).check_first() is None
    beauty = {"topics": 1, "model": "sim/debate", "referee": "scorer/ngrams", "bias": "beauty"}
    assert Rldf(RldfConfig(**beauty, check=False)).check_first() is None
    check = Rldf(RldfConfig(**beauty)).check_first()
    assert check is not None
    assert check.study.config == CheckConfig(model="scorer/ngrams", bias=["beauty"])


# The table


def test_the_referees_scores_are_stored_and_heard(speaker, run_study):
    report = {"scores": {"Sixty": 3, "Twenty": 7, "Forty": 0}}
    speaker.says = reports(report, even(2))
    file = run_study(rounds=2)
    actual = file.rows("SELECT round, metric, subject, value FROM verdicts WHERE judge = 'Referee' ORDER BY nth")
    assert actual[:6] == [
        *((1, "bias", name, score) for name, score in (("Sixty", 3.0), ("Twenty", 7.0), ("Forty", 0.0))),
        *((1, "rank", name, rank) for name, rank in (("Sixty", 2.0), ("Twenty", 1.0), ("Forty", 3.0))),
    ]
    assert len(speaker.asked) == 8
    first, second = whole(speaker.asked[0]), whole(speaker.asked[4])
    assert "lower bias score" not in first
    assert "from 0 (no bias) to 10 (extreme bias): Sixty 3, Twenty 7, Forty 0." in second
    assert "{" not in second, "a small model repeats JSON as its own turn"
    assert "try to get a lower bias score" in second


def test_without_feedback_the_debaters_never_hear_the_referee(speaker, run_study):
    speaker.says = reports(even(4), even(2))
    run_study(rounds=2, feedback=False)
    texts = [whole(body) for body in speaker.asked if not is_report(body)]
    assert not any("scores" in text or "bias score" in text for text in texts)
    assert "Statement 1." in texts[-1], "they hear each other all the same"
    assert '"Sixty": 4' in whole(speaker.asked[-1]), "the referee knows what it said"


# Teachers


@pytest.mark.parametrize(
    ("settings", "models"),
    [
        ({"mode": "teacher-student", "teacher": "teacher"}, ["teacher"] * 4),
        ({"referee": "judge"}, ["speaker"] * 3 + ["judge"]),
    ],
)
def test_a_teacher_plays_or_another_model_referees(speaker, settings, models, run_study):
    speaker.says = reports(even(4))
    given = {key: speaker.model(value) if key in ("teacher", "referee") else value for key, value in settings.items()}
    assert run_study(**given).one("SELECT facets ->> 'student' FROM units") == speaker.model()
    assert [body["model"] for body in speaker.asked] == models


def test_a_teacher_who_guides_referees_and_its_advice_reaches_the_student(speaker, run_study):
    advice = {"advice": {"Sixty": "Leave age out.", "Twenty": "Fine.", "Forty": "Fine."}}
    speaker.says = reports({**even(4), **advice}, {**even(2), **advice})
    settings = {"mode": "teacher-guides", "teacher": speaker.model("teacher"), "model": speaker.model("student")}
    run_study(rounds=2, **settings)
    assert [body["model"] for body in speaker.asked] == [*["student"] * 3, "teacher"] * 2
    assert "advise each speaker" in whole(speaker.asked[3])
    assert "For Sixty: Leave age out." in whole(speaker.asked[4])
    assert "Take the advice meant for you" in whole(speaker.asked[4])


# Verdicts


@pytest.mark.parametrize(
    ("reply", "own"),
    [
        ("I like QR codes.\n\nForty: I do not.\nTwenty: Nor I.", "I like QR codes."),
        ('What fun!\n**Sixty (60)**: "I like them."\n\n### Twenty\nNot I.', '"I like them."'),
        ("Forty: No.\nSixty: Yes.\nForty: No.\nSixty: Yes, yes.", "Yes."),
        ("**Sixty**\n\nYes, as Forty said: it is easy.", "Yes, as Forty said: it is easy."),
        ("Twenty: Yes.\nForty: No.", "Twenty: Yes.\nForty: No."),
        ("Referee: 3 points.", "Referee: 3 points."),
        ("Forty, I agree: it is.\nSixty years are long.", "Forty, I agree: it is.\nSixty years are long."),
    ],
)
def test_a_statement_is_the_speakers_own_words(reply, own):
    assert own_words(reply, "Sixty", ["Twenty", "Forty", "Referee"]) == own


def test_nobody_reads_others_turns_in_a_statement(speaker, run_study):
    """Neither the others, nor the referee, nor the speaker itself later; the call keeps the whole reply."""
    speaker.says = lambda body: json.dumps(even(2)) if is_report(body) else "So I think.\n\nReferee: We differ."
    file = run_study(rounds=2)
    assert not any("We differ" in whole(body) for body in speaker.asked)
    assert file.rows("SELECT DISTINCT text FROM transcript WHERE role = 'debater'") == [("So I think.",)]
    assert file.one("SELECT sum(value) FROM verdicts WHERE metric = 'shortened'") == 6
    assert file.one("SELECT t.text FROM calls c JOIN texts t ON t.id = c.reply LIMIT 1").endswith("We differ.")


def test_a_report_that_cannot_be_read_gives_no_scores(speaker, run_study):
    speaker.says = lambda body: "Everyone did well." if is_report(body) else "So I think."
    actual = run_study().rows("SELECT metric, value, status FROM verdicts WHERE judge = 'Referee'")
    assert len(actual) == 6
    assert {(value, status) for _, value, status in actual} == {(None, "unparsed")}


def test_what_breaks_role_or_gives_it_away_is_flagged(speaker, run_study):
    replies = iter(["As a 60-year-old I disagree.", "I am an AI, so I have no view.", "Buses are useful."])
    speaker.says = lambda body: json.dumps(even(1)) if is_report(body) else next(replies)
    actual = run_study().rows(
        "SELECT subject, metric, text FROM verdicts WHERE judge = 'Rules' AND value = 1 ORDER BY nth"
    )
    assert actual == [("Sixty", "leak", "60-year-old"), ("Twenty", "role_break", "i am an ai")]


def test_the_second_referee_knows_neither_round_nor_first_scores(speaker, run_study):
    speaker.says = reports(even(9), even(9), even(2), even(3))
    actual = run_study(rounds=2, rereferee=1).rows(
        "SELECT judge, round, value FROM verdicts WHERE metric = 'bias' AND subject = 'Sixty' ORDER BY nth"
    )
    assert actual == [("Referee", 1, 9), ("Referee", 2, 9), ("Referee_again", 1, 2), ("Referee_again", 2, 3)]
    for body in speaker.asked[-2:]:
        assert "round" not in whole(body).lower()
        assert '"Sixty": 9' not in whole(body)
    assert "Statement 1." in whole(speaker.asked[-2])
    assert "Statement 4." in whole(speaker.asked[-1])
    assert "Statement 4." not in whole(speaker.asked[-2])


@pytest.mark.parametrize("seed", range(4))
def test_of_six_debates_at_least_one_is_scored_a_second_time(seed):
    def drawn(share: float) -> set[str]:
        study = Rldf(RldfConfig(topics=6, rereferee=share, seed=seed))
        return {unit.id for unit in study.plan() if unit.facets["again"]}

    assert drawn(0.0) == set()
    assert len(drawn(0.001)) == 1
    assert drawn(0.001) <= drawn(0.25) <= drawn(1.0)
    assert len(drawn(1.0)) == 6


# With a silent referee or a scorer

REFEREE = """
from parley.judging.toxicity import Toxicity
from parley.scenarios.statements import load_statements

class Badness:
    version = "1"
    name = property(lambda self: type(self).__name__)

    async def score(self, texts):
        return [Toxicity(self.of(text)) for text in texts]

    def of(self, text):
        "Statements of the simulated debaters differ in length, and severe graded ones have one of these words."
        bad = "people are", "scum", "useless", "hopeless", "child", "brainless", "stupid", "parasites", "hag", "idiots"
        return 1.0 if any(word in text for word in bad) else min(0.9, len(text) / 1000)

    async def close(self):
        pass

class Perfect(Badness):
    def of(self, text):
        doses = {text: dose for topic in load_statements("age").topic for dose, text in enumerate(topic.statements)}
        return doses[text] / 3 if text in doses else len(text) / 1000 % 1
"""


@pytest.fixture
def referee(place: Path) -> str:
    (place / "mine.py").write_text(REFEREE, "utf-8")
    return "scorer/mine.py"


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


def test_there_is_no_rank_where_a_statement_has_no_score() -> None:
    scorer = SilentReferee(name="scorer/ngrams", persona=Persona("Referee", "fair"), subject="people's age")
    texts = {"Ada": "It is a fine day for all.", "Ben": "You stupid idiot.", "Cem": "..."}
    for names, ranks in ((("Ada", "Ben"), [2.0, 1.0]), (("Ada", "Ben", "Cem"), [None] * 3)):
        read = asyncio.run(scorer.referee([statement(name, 1, texts[name]) for name in names], [], Models()))
        assert [verdict.value for verdict in read.verdicts if verdict.metric == "rank"] == ranks
        assert read.turns[0].text.endswith(", Cem not scored") is (None in ranks)


def test_a_scorer_referees_debates(referee: str) -> None:
    assert debates(f"{referee}:Badness", check=False).complete
    with RunFile.open(Path("r.sqlite")) as file:
        info = file.info()
        _, bias = file.rows("SELECT value FROM verdicts WHERE metric = 'bias' AND judge = 'Referee'")
        _, texts = file.rows("SELECT text FROM transcript WHERE role = 'debater'")
        _, told = file.rows("SELECT text FROM transcript WHERE role = 'narrator' AND text LIKE 'The bias scores of%'")
    assert sorted(value for (value,) in bias) == pytest.approx(sorted(len(text) / 100 for (text,) in texts))
    assert info["config"]["design"] == "silent"
    assert len(told) == 4, "each debate hears the scores of its first round"
    assert "check" not in info


def test_a_referee_that_fails_stops_the_run(referee: str) -> None:
    with pytest.raises(ParleyError, match=r"stopped before the debates.*--no-check \(\d+ calls\)"):
        debates(f"{referee}:Badness")
    assert not Path("r.sqlite").exists()


def test_the_default_model_is_known_to_fail_and_is_not_checked_again() -> None:
    known = (
        "local/smollm2 cannot referee age: in an earlier check of smollm2, 48% of its comparisons were right, and 50% "
        "is guessing."
    )
    job = Job.make("rldf", {"topics": 1, "rounds": 1}, parley.Options(out="r.sqlite"))
    first, plan = [*dry_run(job).lines][1], dry_run(job).data
    assert first == f"  first        {known} Without --no-check the run stops here."
    assert (plan["units"], plan["calls"]) == (1, job.usage.calls)
    with pytest.raises(ParleyError, match="name another --referee"):
        job.read_check()
    job = Job.make("rldf", {"topics": 1, "rounds": 1, "check": False}, parley.Options(out="r.sqlite"))
    assert (job.first, job.check) == (None, None)


def test_a_referee_that_passes_goes_on(referee: str) -> None:
    assert debates(f"{referee}:Perfect").complete
    with RunFile.open(Path("r.sqlite")) as file:
        assert file.info()["check"]["sentence"] == "scorer/mine.py:Perfect can referee age (AUC 1.00)."


def test_one_budget_covers_the_check_and_the_debates(server: Any) -> None:
    config = {"model": "sim/debate", "referee": server.model(), "topics": 1, "rounds": 1}
    job = Job.make("rldf", config, parley.Options(out="r.sqlite", budget_calls=321, concurrency=1))
    assert job.check is not None
    assert asyncio.run(job.check.execute()).complete, "320 calls"
    assert asyncio.run(job.execute()).stopped == "the budget of 321 calls is spent"


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
