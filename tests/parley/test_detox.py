"""One text through the loop: on the command line, from standard input, and from Python. It does no harm: harmless texts
stay, the best draft wins, and what was not scored is not met."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parley as package
from parley.agents import ConfigError, Models
from parley.judging.stardtox.detox import CHARS_PER_TOKEN, longest_passage, passages
from parley.judging.toxicity.scorer import ScorerThresholds
from parley.judging.toxicity.swaps import Swaps

SIM = "sim/m?base=90&noise=0"
UNHAPPY = "sim/m?base=10&noise=0"
"""A model whose judges find every text badly written, so that the loop would revise everything."""
HARMLESS = ("I am {}.", "My {} neighbour works at a bakery.", "Many {} people live in this town.")
SCORERS = '''
from parley.judging.toxicity import Toxicity

class Words:
    name, version = "words", "1"

    async def score(self, texts):
        return [Toxicity(None, why="another language") if "ναι" in text else Toxicity(0.9 if "idiot" in text else 0.01)
                for text in texts]

    async def close(self):
        pass

class Rude(Words):
    """An exclamation mark is 0.1 of toxicity."""
    name = "rude"

    async def score(self, texts):
        return [Toxicity(min(1.0, text.count("!") / 10)) for text in texts]

class Asking(Words):
    name = "asking"

    async def score(self, texts):
        return [Toxicity(text.count("?") / 10) for text in texts]
'''
INSULT = "You are an idiot."


@pytest.fixture(autouse=True)
def _write_scorers(place):
    (place / "own.py").write_text(SCORERS)


@pytest.fixture
def command(parley):
    return lambda *given: parley("detox", *given, "--model", SIM, "--scorer", "own.py:Words")


def test_iterations_fit_the_screen_and_passages_are_counted(command):
    result = command(INSULT)
    shown, _, text = result.out.partition("result:")
    assert (result.status, max(map(len, shown.splitlines())) <= 80) == (0, True), "the text itself is one line"
    output = command(INSULT, "--json").json
    assert (output["met"], output["usage"]["calls"]) == (True, 3), "two judgements and a revision"
    assert text.strip() == output["text"] == output["steps"][1]["text"]
    long = command("The council met on Tuesday. " * 300)
    headings = [line for line in long.out.splitlines() if line.startswith("passage")]
    assert headings == ["passage 1 of 2, iteration 0", "passage 2 of 2, iteration 0"]


def test_the_exit_status_says_whether_criteria_are_met_and_flags_who_judges(command, parley):
    result = command(INSULT, "--criteria", "fluency >= 99", "--max-iterations", "1")
    assert result.status == 1
    assert "result (not all criteria are met):" in result.out
    assert "stopped after 1 revision, not met: fluency" in result.out
    output = command("A kind word.", "--without", "performance", "--json").json
    assert [score["name"] for score in output["steps"][0]["scores"]] == ["toxicity"]
    assert (output["text"], output["usage"]["calls"]) == ("A kind word.", 0)
    output = command(INSULT, "--without", "toxicity", "--json").json
    assert [score["name"] for score in output["steps"][0]["scores"]] == ["fluency", "coherence", "relevance"]
    result = command(INSULT, "--without", "toxicity,performance")
    assert (result.status, result.complaints) == (2, ["parley: all evaluators are left out: nothing would be judged"])
    output = parley("detox", "Hello.", "--model", SIM, "--scorer", "judge:sim/other", "--json").json
    assert [line.partition(" is SIMULATED")[0] for line in output["cautions"][:2]] == [SIM, "sim/other"]
    unmeasured = "judge:sim/other has no measured threshold: it gets the paper's, toxicity < 0.1, which was meant"
    assert output["cautions"][2].startswith(unmeasured)


def test_from_standard_input(command, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("Füße \x1b[31m!".encode())))
    assert "Füße \\x1b[31m!" in command("-", "--without", "performance").out  # no escape sequence reaches the terminal
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe")))
    result = command("-")
    assert (result.status, result.complaints) == (2, ["parley: standard input is not UTF-8 text (byte 0)"])


def test_a_text_in_another_language_is_not_revised_even_if_a_judge_is_not_satisfied(command):
    for flags in (("--without", "performance"), ("--criteria", "fluency >= 99")):
        result = command("ναι, ναι", *flags)
        assert result.status == 1
        assert "toxicity   unscored   criterion < 0.1\n" in result.out
        assert "not met\n" not in result.out
        output = command("ναι, ναι", *flags, "--json").json
        assert (output["text"], output["met"], output["usage"]["calls"]) == ("ναι, ναι", False, 0)
        score = output["steps"][0]["scores"][0]
        assert (score["value"], score["met"], score["note"]) == (None, False, "another language")
        assert output["decisions"] == ["unchanged, not scored: toxicity"]
    long = package.detox("ναι, ναι. " * 1000, model=SIM, scorer="own.py:Words")
    assert (long.met, set(long.decisions)) == (False, {"unchanged, not scored: toxicity"})


def test_only_the_rude_passage_of_a_long_text_is_revised():
    calm = "The council met on Tuesday to talk about the new bridge. " * 1000
    text = calm[:30_000] + INSULT + " " + calm[30_000:]
    unused = package.detox(text, model=SIM, scorer="own.py:Words")
    assert (unused.text, unused.met) == (text, False), "a passage of a thousand words, revised to one sentence"
    assert unused.cautions[-1] == "a revision that refuses, or keeps next to nothing of the text, was not used"
    output = package.detox(text, model=SIM, scorer="own.py:Words", as_published=True)
    (revised,) = [step.passage for step in output.steps if step.iteration > 0]
    assert (output.met, output.passages > 5, INSULT in output.text) == (True, True, False)
    assert all(piece in output.text for index, piece in enumerate(passages(text, 6000)) if index != revised)
    words = "word " * 1200
    for more, count in (("", 1), ("more", 2)):
        assert package.detox(words + more, model=SIM, scorer="own.py:Words").passages == count


async def test_the_last_revision_of_a_passage_still_fits_the_context(server):
    sentence = "The idiot met the council again on Tuesday to talk about it. "
    server.answer = lambda nth, body: server.reply("idiot " + "x" * (longest - 6))
    models = Models()
    client = models[server.model()]
    client.context_tokens = 2000
    longest = longest_passage(client, 3)
    settings = {"scorer": "own.py:Words", "without": ["performance"], "max_iterations": 3}
    result = await package.detox_async(sentence * 20, model=server.model(), models=models, **settings)
    await models.close()
    assert result.passages == len(sentence * 20) // longest + 1
    assert len(server.asked) == 3 * result.passages
    for body in server.asked:
        prompt = sum(len(message["content"]) for message in body["messages"])
        assert prompt / CHARS_PER_TOKEN + body["max_tokens"] <= client.context_tokens


@given(st.text(alphabet="ab. \n中", max_size=300), st.integers(1, 40))
def test_passages_joined_are_the_text(text, longest):
    cut = passages(text, longest)
    assert "".join(cut) == text
    assert all(0 < len(piece) <= longest for piece in cut)


async def test_planted_harmless_texts_are_returned_unchanged():
    pytest.importorskip("profanity_check")
    models, identities = Models(), Swaps.load().others["describing"][::20]
    planted = ["The weather is lovely today.", *(text.format(who) for text in HARMLESS for who in identities)]
    results = [await package.detox_async(text, model=UNHAPPY, models=models) for text in planted]
    await models.close()
    with pytest.raises(ConfigError, match=r"use await parley.detox_async\(...\) instead"):
        package.detox("Hello.", model=SIM)
    assert len(planted) > 20
    assert [result.text for result in results] == planted
    assert sum(result.usage.calls for result in results) == 0
    lovely = results[0]
    assert (lovely.met, lovely.decisions) == (True, ("unchanged: it meets the scorers' criteria",))


def test_thresholds_of_the_embedded_scorer():
    pytest.importorskip("profanity_check")
    published = package.detox("The weather is lovely today.", model=UNHAPPY, as_published=True)
    assert published.text != "The weather is lovely today."
    assert published.steps[0].scores[0].criterion == "< 0.1"
    for text in ("Jij bent een idioot en niemand mag je.", "Hij is dom en je bent een klootzak."):
        dutch = package.detox(text, model="sim/m?base=95&noise=0")
        assert (dutch.text, dutch.met, dutch.decisions) == (text, False, ("unchanged, not scored: toxicity",))
        assert "this looks like Dutch" in dutch.steps[0].scores[0].note
    between = package.detox("He works as a nurse in the city hospital.", model=UNHAPPY)  # 0.21
    assert (between.met, between.usage.calls) == (False, 0)
    assert between.decisions == ("unchanged, unclear: toxicity is neither < 0.034 nor >= 0.2912",)
    insult = package.detox("You are a stupid idiot.", model="sim/m?base=95&noise=0")
    assert insult.steps[0].scores[0].criterion == "< 0.034"
    assert insult.text != "You are a stupid idiot."


@pytest.fixture
def detox(server):
    """Detox with a model that replies with given drafts, one per revision.

    There is no judge, except with `without=()`: it finds drafts with "~" badly written.
    """

    def run(text, *drafts, **settings):
        replies = iter(drafts)

        def answer(nth, body):
            if "response_format" not in body:
                return server.reply(next(replies))
            score = 50 if "~" in body["messages"][-1]["content"].partition(" DRAFT\n")[2] else 90
            names = body["response_format"]["json_schema"]["schema"]["properties"]
            return server.reply(json.dumps({name: "why" if name == "reason" else score for name in names}))

        server.answer = answer
        settings = {"without": ["performance"], "max_iterations": len(drafts), "scorer": "own.py:Rude"} | settings
        return package.detox(text, model=server.model(), **settings)

    return run


LONG = "The new manager is a stupid idiot who cancels every meeting!!!"
KIND = "The manager often cancels meetings."
REFUSAL = "I'm sorry, but I can't help with that."
DRAFTS = [
    ("You!!!!!!!!!", ["better!!!!!", "best!!!", "as good!!!", "worse!!!!!!"], {}, "best!!!", 2, False),
    ("You!!!", ["You!!!!!", "You!!!!!!!"], {}, "You!!!", 0, False),
    ("You~!!!", ["You, sir!!!"], {"without": ()}, "You, sir!!!", 1, False),
    ("You!!!", ["fine~"], {"without": ()}, "fine~", 1, False),
    ("You!!!", ["fine", "finer"], {}, "fine", 1, True),
    ("You!!!", [REFUSAL], {}, "You!!!", 0, False),
    ("You!!!", [" "], {}, "You!!!", 0, False),
    ("\n  You!!!\n\n", [" fine\n"], {}, "\n  fine\n\n", 1, True),
    (LONG, ["Fine.", LONG.replace("stupid idiot", "person").rstrip("!")], {}, LONG, 0, False),
    (LONG, ["The weather is lovely today, and birds sing in every tree."], {}, LONG, 0, False),
    (LONG, [KIND], {}, KIND, 1, True),
]


def test_the_draft_that_is_returned(detox, parley, server):
    for text, drafts, settings, returned, kept, met in DRAFTS:
        result = detox(text, *drafts, **settings)
        assert (result.text, result.kept, result.met) == (returned, (kept,), met), drafts
        assert not met or len(result.steps) == kept + 1, "a draft that meets the criteria is the last"
        useless = returned == LONG or drafts[0] == REFUSAL
        caution = "a revision that refuses, or keeps next to nothing of the text, was not used"
        assert (caution in result.cautions) == useless
    assert detox("You!!!", "You!!!!!", "You!!!!!!!", as_published=True).text == "You!!!!!!!", "the last one"
    server.answer = lambda nth, body: server.reply("better!!!" if nth % 2 == 0 else "worse!!!!!!!!!!")
    server.asked.clear()
    told = parley("detox", "You!!!!!", "--model", server.model(), "--scorer", "own.py:Rude", "--without", "performance")
    assert "result (not all criteria are met; the best draft was iteration 1):\nbetter!!!\n" in told.out
    assert any("rude has no measured threshold" in line for line in told.err.splitlines())


def test_a_score_without_a_criterion_is_never_a_missed_one(detox, place):
    (place / "mine.toml").write_text(
        '[[evaluator]]\nname = "toxicity"\nscorer = "own.py:Rude"\ncriteria = { toxicity = "< 0.1" }\n'
        '[[evaluator]]\nname = "asking"\nscorer = "own.py:Asking"\n'
    )
    mine = {"without": (), "scorer": None, "team": "mine.toml"}
    harmless = detox("You?????", **mine)
    scores = [(score.name, score.value, score.met) for score in harmless.steps[0].scores]
    assert scores == [("toxicity", 0.0, True), ("asking", 0.5, None)]
    assert (harmless.met, harmless.decisions) == (True, ("unchanged: it meets the scorers' criteria",))
    assert detox("You!!!?????", "fine?????", **mine).met
    best = detox("You!!!!!!!!!?????????", "better!!!?????????", "worse!!!!?", **mine)
    assert best.kept == (1,), "by toxicity alone: the second draft asks less, which nobody asked for"


def test_what_is_sent_and_what_is_counted(detox, server):
    for text in ("You!!!", f"{'The manager is late. ' * 250}You!!!"):
        server.asked.clear()
        detox(text, "fine")
        (body,) = server.asked
        assert body["max_tokens"] > max(64, len(text) / 2.5), "a token may be as short as two and a half characters"
    server.asked.clear()
    detox("You!!!", "fine", without=(), seed=7, temperature=0.3)
    assert ["response_format" in body for body in server.asked] == [True, False, True]
    assert {body["temperature"] for body in server.asked} == {0.3}
    seeds = [body["seed"] for body in server.asked]
    assert len(set(seeds)) == 3
    detox("You!!!", "fine", without=(), seed=7, temperature=0.3)
    assert [body["seed"] for body in server.asked[3:]] == seeds
    detox("You!!!", "fine", without=(), seed=8, temperature=0.3)
    assert not {body["seed"] for body in server.asked[6:]} & set(seeds)
    usage = detox("You!!!", "fine").usage
    assert (usage.calls, usage.prompt_tokens) == (1, 100)


def test_every_draft_says_what_else_it_changed_and_what_an_outsider_makes_of_it(detox):
    first, second = detox("The gay baker is an idiot!!!", "The baker has much to learn").steps
    assert (first.outside or 0) > (second.outside or 0) > 0
    kept = pytest.approx(100 / 3)  # gay, baker, idiot
    assert second.changes == {"words_kept": kept, "length": 100, "refusal": 0, "identity_words_kept": 0}
    assert [step.outside for step in detox("You!!!", "fine", measure="none").steps] == [None, None]
    with pytest.raises(ConfigError, match="the loop uses this scorer itself"):
        detox("You!!!", "fine", measure="own.py:Rude")


def test_measured_thresholds(detox, monkeypatch):
    def measured(version):
        table = {"rude": ScorerThresholds(version, harmless_below=0.15, toxic_from=0.45)}
        monkeypatch.setattr("parley.judging.stardtox.team.measured_thresholds", lambda: table)

    measured("1")
    low, unsure, high = (detox(f"You{'!' * n}", "fine") for n in (1, 3, 5))
    assert (low.text, low.met, low.cautions) == ("You!", True, ())
    assert (unsure.text, unsure.met) == ("You!!!", False)
    assert (high.text, high.met) == ("fine", True)
    assert detox("You!!!", "fine", criteria=["toxicity < 0.5"]).met  # your own word counts
    measured("0")
    assert detox("You", "x").cautions == ("the thresholds of rude were measured on its version 0",)


@pytest.mark.parametrize(("mixed", "fooled"), [(90, True), (10, False)])
def test_a_judge_that_likes_shuffled_words_as_much_is_a_caution(server, mixed, fooled):
    text = "You there are very late again!!!"

    def answer(nth, body):
        if "response_format" not in body:
            return server.reply("fine")
        score = 90 if text in body["messages"][-1]["content"].partition(" DRAFT\n")[2] else mixed
        return server.reply(json.dumps({"fluency": score, "coherence": score, "relevance": score, "reason": "so"}))

    server.answer = answer
    cautions = package.detox(text, model=server.model(), scorer="own.py:Rude", max_iterations=1).cautions
    assert any("random order no lower" in line for line in cautions) is fooled
    judged = [body for body in server.asked if "response_format" in body]
    assert len(judged) == 3, "the text, its words in another order, and the revision"
