"""Detox does no harm: harmless texts stay, the best draft wins, and what was not scored is not met."""

from __future__ import annotations

import json
from typing import Any

import pytest

import parley as package
from parley.agents import ConfigError, Models
from parley.scenarios.audit import load_audit

UNHAPPY = "sim/m?base=10&noise=0"
"""A model whose judges find every text badly written, so that the loop would revise everything."""
HARMLESS = (
    "The weather is lovely today.",
    "Good morning.",
    "Thank you for your help yesterday.",
    "The train leaves at nine from platform four.",
    "My grandmother taught me how to bake an apple pie.",
    "Could you send me the report by Friday, please?",
    "He works as a nurse in the city hospital.",
    "She has been teaching mathematics for ten years.",
    "It snowed all night, and the roads were white.",
    "They adopted a small dog from the shelter.",
    "Congratulations on your new job!",
    "I forgot my umbrella on the bus.",
)
LENGTHS = """
from parley.judging.toxicity import Toxicity

class Rude:
    name, version = "rude", "1"

    async def score(self, texts):
        return [Toxicity(min(1.0, text.count("!") / 10)) for text in texts]

    async def close(self):
        with open("closed.txt", "a") as file:
            file.write(self.name)

class Asking(Rude):
    name = "asking"

    async def score(self, texts):
        return [Toxicity(text.count("?") / 10) for text in texts]
"""


@pytest.fixture
def detox(server, place):
    """Detox with a model that replies with given drafts, one per revision; "!" is 0.1 of toxicity.

    There is no judge, except with `performance=True`: it finds drafts with "~" badly written.
    """
    (place / "rude.py").write_text(LENGTHS)

    def run(text, *drafts, **settings):
        replies = iter(drafts)

        def answer(nth, body):
            if "response_format" not in body:
                return server.reply(next(replies))
            score = 50 if "~" in body["messages"][-1]["content"].partition(" DRAFT\n")[2] else 90
            names = body["response_format"]["json_schema"]["schema"]["properties"]
            return server.reply(json.dumps({name: "why" if name == "reason" else score for name in names}))

        server.answer = answer
        settings = {"performance": False, "max_iterations": len(drafts), "scorer": "rude.py:Rude"} | settings
        return package.detox(text, model=server.model(), **settings)

    return run


@pytest.mark.parametrize("step", [25, pytest.param(1, marks=pytest.mark.nightly)])
async def test_planted_harmless_texts_are_returned_unchanged(place, step):
    pytest.importorskip("profanity_check")
    models = Models()
    audit = load_audit()
    planted = [*HARMLESS, *(probe.text for probe in audit.probes if not probe.hostile)]
    planted += [control.text for control in audit.controls if control.kind == "neutral"]
    planted = planted[::step]
    results = [await package.detox_async(text, model=UNHAPPY, models=models) for text in planted]
    await models.close()
    assert len(planted) > 300 / step
    assert [result.text for result in results] == planted
    assert sum(result.usage.calls for result in results) == 0
    lovely = results[0]
    assert (lovely.met, lovely.decisions) == (True, ("unchanged: it meets the scorers' criteria",))


def test_as_published_judges_the_harmless_text_and_changes_it():
    pytest.importorskip("profanity_check")
    result = package.detox(HARMLESS[0], model=UNHAPPY, as_published=True)
    assert result.text != HARMLESS[0]
    assert result.steps[0].scores[0].asked == "< 0.1"


@pytest.mark.parametrize("text", ["Jij bent een idioot en niemand mag je.", "Hij is dom en je bent een klootzak."])
def test_a_dutch_insult_is_not_met(text):
    pytest.importorskip("profanity_check")
    result = package.detox(text, model="sim/m?base=95&noise=0")
    assert (result.text, result.met) == (text, False)
    assert result.decisions == ("unchanged, not scored: toxicity",)
    assert "this looks like Dutch" in result.steps[0].scores[0].note


def test_between_the_two_thresholds_a_text_is_neither_revised_nor_met():
    pytest.importorskip("profanity_check")
    result = package.detox("He works as a nurse in the city hospital.", model=UNHAPPY)  # 0.21
    assert (result.met, result.usage.calls) == (False, 0)
    assert result.decisions == ("unchanged, unclear: toxicity is neither < 0.034 nor >= 0.2912",)


def test_an_insult_is_revised_until_it_is_below_the_calibrated_threshold():
    pytest.importorskip("profanity_check")
    result = package.detox("You are a stupid idiot.", model="sim/m?base=95&noise=0")
    assert result.steps[0].scores[0].asked == "< 0.034"
    assert result.text != "You are a stupid idiot."


LONG = "The new manager is a stupid idiot who cancels every meeting!!!"
KIND = "The manager often cancels meetings."
REFUSAL = "I'm sorry, but I can't help with that."
DRAFTS: list[tuple[str, list[str], dict[str, Any], str, int, bool]] = [
    ("You!!!!!!!!!", ["better!!!!!", "best!!!", "as good!!!", "worse!!!!!!"], {}, "best!!!", 2, False),
    ("You!!!", ["You!!!!!", "You!!!!!!!"], {}, "You!!!", 0, False),
    ("You~!!!", ["You, sir!!!"], {"performance": True}, "You, sir!!!", 1, False),
    ("You!!!", ["fine~"], {"performance": True}, "fine~", 1, False),
    ("You!!!", ["fine", "finer"], {}, "fine", 1, True),
    ("You!!!", [REFUSAL], {}, "You!!!", 0, False),
    ("You!!!", [" "], {}, "You!!!", 0, False),
    ("\n  You!!!\n\n", [" fine\n"], {}, "\n  fine\n\n", 1, True),
    (LONG, ["Fine.", LONG.replace("stupid idiot", "person").rstrip("!")], {}, LONG, 0, False),
    (LONG, ["The weather is lovely today, and birds sing in every tree."], {}, LONG, 0, False),
    (LONG, [KIND], {}, KIND, 1, True),
]


@pytest.mark.parametrize(
    ("text", "drafts", "settings", "returned", "kept", "met"),
    DRAFTS,
    ids=[f"{row[0][:8]!r} to {row[1][0][:20]!r}" for row in DRAFTS],
)
def test_the_draft_that_is_returned(detox, text, drafts, settings, returned, kept, met):
    result = detox(text, *drafts, **settings)
    assert (result.text, result.kept, result.met) == (returned, (kept,), met)
    assert not met or len(result.steps) == kept + 1, "a draft that meets the criteria is the last"
    useless = returned == LONG or drafts[0] == REFUSAL
    caution = "a revision that refuses, or keeps next to nothing of the text, was not used"
    assert (caution in result.cautions) == useless


def test_as_published_the_last_draft_is_returned(detox):
    assert detox("You!!!", "You!!!!!", "You!!!!!!!", as_published=True).text == "You!!!!!!!"


def test_a_score_without_a_criterion_is_never_a_missed_one(detox, place):
    (place / "mine.toml").write_text(
        '[[evaluator]]\nname = "toxicity"\nscorer = "rude.py:Rude"\ncriteria = { toxicity = "< 0.1" }\n'
        '[[evaluator]]\nname = "asking"\nscorer = "rude.py:Asking"\n'
    )
    mine = {"performance": True, "scorer": None, "team": "mine.toml"}
    harmless = detox("You?????", **mine)
    assert [(score.name, score.value, score.met) for score in harmless.steps[0].scores] == [
        ("toxicity", 0.0, True),
        ("asking", 0.5, None),
    ]
    assert (harmless.met, harmless.decisions) == (True, ("unchanged: it meets the scorers' criteria",))
    assert detox("You!!!?????", "fine?????", **mine).met
    best = detox("You!!!!!!!!!?????????", "better!!!?????????", "worse!!!!?", **mine)
    assert best.kept == (1,), "by toxicity alone: the second draft asks less, which nobody asked for"


def test_a_revision_may_be_as_long_as_its_text(detox, server):
    for text in ("You!!!", f"{'The manager is late. ' * 250}You!!!"):
        server.asked.clear()
        detox(text, "fine")
        (body,) = server.asked
        assert body["max_tokens"] > max(64, len(text) / 2.5), "a token may be as short as two and a half characters"


def test_seed_and_temperature_go_to_the_model_and_to_the_judges(detox, server):
    detox("You!!!", "fine", performance=True, meaning=server.model(), seed=7, temperature=0.3)
    assert ["response_format" in body for body in server.asked] == [True, False, True, True]
    assert {(body["seed"], body["temperature"]) for body in server.asked} == {(7, 0.3)}


def test_calls_that_only_measure_are_counted_too(detox, server):
    alone = detox("You!!!", "fine").usage
    measured = detox("You!!!", "fine", meaning=server.model()).usage
    assert (alone.calls, measured.calls) == (1, 2)
    assert measured.prompt_tokens == 2 * alone.prompt_tokens == 200


def test_clients_are_closed_unless_they_are_the_applications_own(detox, place):
    closed = place / "closed.txt"
    detox("You!!!", "fine", models=Models())
    assert not closed.exists()
    detox("You!!!", "fine")
    assert closed.read_text() == "rude"
    with pytest.raises(RuntimeError):
        detox("You!!!", max_iterations=1, on_step=_fail)
    assert closed.read_text() == "ruderude", "also after an error"


def _fail(step: object) -> None:
    raise RuntimeError


def test_every_draft_says_what_else_it_changed_and_what_an_outsider_makes_of_it(detox):
    first, second = detox("The gay baker is an idiot!!!", "The baker has much to learn").steps
    assert (first.outside or 0) > (second.outside or 0) > 0
    assert second.changes == {
        "words_kept": pytest.approx(100 / 3),  # gay, baker, idiot
        "length": 100,
        "refusal": 0,
        "identity_words_kept": 0,
    }
    assert [step.outside for step in detox("You!!!", "fine", measure="none").steps] == [None, None]
    with pytest.raises(ConfigError, match="the loop uses this scorer itself"):
        detox("You!!!", "fine", measure="rude.py:Rude")


CALIBRATION = """scorer = "rude"
version = "1"
command = "parley score calibrate a.jsonl"
texts = "a.jsonl"
labels = "toxic"
miss_rate = 0.1
false_alarm_rate = 0.05
harmless_below = 0.15
toxic_from = 0.45
at = 0.1
group = []
"""


def test_your_own_calibration(detox, place):
    (place / "mine.toml").write_text(CALIBRATION)
    low, unsure, high = (detox(f"You{'!' * n}", "fine", calibration="mine.toml") for n in (1, 3, 5))
    assert (low.text, low.met, low.cautions) == ("You!", True, ())
    assert (unsure.text, unsure.met) == ("You!!!", False)
    assert (high.text, high.met) == ("fine", True)
    (place / "mine.toml").write_text(CALIBRATION.replace('version = "1"', 'version = "0"'))
    assert detox("You", "x", calibration="mine.toml").cautions == (
        "the thresholds of rude were measured on its version 0",
    )
    assert detox("You!!!", "fine", criteria=["toxicity < 0.5"], calibration="mine.toml").met  # your own word counts
    (place / "mine.toml").write_text(CALIBRATION.replace("rude", "other"))
    with pytest.raises(ConfigError, match="a calibration of the scorer 'other', but the team uses"):
        detox("You", "x", calibration="mine.toml")


def test_the_command_says_which_draft_it_returns(parley, server, place):
    (place / "rude.py").write_text(LENGTHS)
    server.answer = lambda nth, body: server.reply("better!!!" if nth % 2 == 0 else "worse!!!!!!!!!!")
    command = ("detox", "You!!!!!", "--model", server.model(), "--scorer", "rude.py:Rude", "--no-performance")
    result = parley(*command)
    assert "result (not all criteria are met; the best draft was iteration 1):\nbetter!!!\n" in result.out
    assert any("rude has no calibration" in line for line in result.err.splitlines())
    assert parley(*command, "--json").json["kept"] == [1]
    wrong = parley(*command, "--as-published", "--calibration", "mine.toml")
    assert wrong.complaints == ["parley: as_published uses the paper's threshold: leave out the calibration"]
