"""MALIBU's silent ballots and the debates after them: units, words, and what is stored."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from parley.agents import Models, Session, SilentBallot, session
from parley.judging.malibu.plan import MalibuConfig
from parley.judging.malibu.study import Malibu
from parley.runs import rehearsal
from parley.runs.rehearsal import rehearse
from parley.scenarios import LabelChoice


def study(**options):
    options = {"suite": "full", "limit": 20, "design": "silent", "model": ["sim/judge?female=0.5"], **options}
    return Malibu(MalibuConfig(**options))


def run(malibu, keep=lambda unit: True):
    async def all_units():
        models = Models()
        try:
            with session(Session(label_words=malibu.label_words)):
                return [(unit, await malibu.run(unit, models)) for unit in malibu.plan() if keep(unit)]
        finally:
            await models.close()

    return asyncio.run(all_units())


def test_judges_of_a_debate_cast_silent_ballots_then_speak_blindly_then_read_each_other():
    malibu = study(design="staged", limit=2)
    ((_, outcome),) = run(malibu, lambda unit: unit.id == "t1/eldercare-night-fall/female/r0")
    assert Counter(verdict.round for verdict in outcome.verdicts) == {0: 4, 1: 4, 2: 4}
    first, *_ = outcome.transcript.spoken(round=2)
    others = [turn.text for turn in outcome.transcript.spoken(round=1) if turn.speaker != first.speaker]
    assert [message.text for message in first.calls[0].prompt[3:-1]] == others


@pytest.mark.parametrize(
    ("design", "ballots"),
    [("silent", 2 * 10), pytest.param("staged", 2 * 10 + (2 * 10 + 8) * 4, marks=pytest.mark.nightly)],
)
def test_a_model_without_probabilities_is_asked_five_times_and_a_note_says_so(design, ballots, monkeypatch):
    monkeypatch.setattr(rehearsal, "MOST_CALLS", 100_000)
    settings = {"phases": [1], "yardstick": "off", "controls": False, "design": design, "limit": 2}
    malibu = study(model=["sim/judge?silent=false", "sim/judge?female=0.5"], **settings)
    assert list(malibu.notes(dry_run=False)) == [
        "sim/judge?silent=false gives no log-probabilities: each ballot is the mean of 5 sampled replies",
        "2 bases: no difference can be significant, however large; 3 tests need at least 7 bases",
    ]
    once = study(model=["sim/judge?silent=true", "sim/judge?female=0.5"], **settings)
    assert rehearse(malibu).calls - rehearse(once).calls == 4 * ballots


def test_a_judge_with_a_model_of_its_own_is_counted_by_it(tmp_path):
    judges = tmp_path / "two.toml"
    ann = '[[persona]]\nname = "Ann"\nabout = "Ann."\nmodel = "sim/judge?silent=false"\n'
    judges.write_text(ann + '[[persona]]\nname = "Ben"\nabout = "Ben."\n')
    malibu = study(phases=[1], yardstick="off", controls=False, identities=["gender"], judges=str(judges))
    (note,) = malibu.notes(dry_run=False)
    assert note.startswith("sim/judge?silent=false gives no log-probabilities")
    assert rehearse(malibu).calls == 40 * (5 + 1)


def test_fewer_wordings_than_bases_are_noted_once_per_category():
    german = {"wordings": "german", "identities": ["gender"]}
    malibu = study(limit=20, **german)
    few = len(LabelChoice.of(malibu.design.silent.wordings, malibu.identities).labels_for("gender"))
    assert few < 20
    (note,) = malibu.notes(dry_run=False)
    assert note.startswith(f"{few} label wordings of german for gender repeat over 20 bases, so")
    assert list(study(limit=few, **german).notes(dry_run=False)) == []


@pytest.mark.parametrize("ties", [False, True])
def test_a_ballot_has_its_scale_its_choices_and_the_beginning_of_its_reply(ties):
    malibu = study(limit=1, wordings="german", suite="german-1", identities=["gender"], samples=7, ties=ties)
    silent, cells = malibu.design.silent, {cell.phase: cell for _, cell in malibu.cells()}
    prompt = silent.wordings.prompt.model_copy(update={"prefill": "Note:", "prefill_pair": "Besser:"})
    silent.wordings = silent.wordings.model_copy(update={"prompt": prompt})
    single, pair = (silent.ballots(cells[phase], ["x", "y"][:phase], "s")[0] for phase in (1, 2))
    assert single == SilentBallot(question=single.question, metric="Overall", low=1, high=9, prefill="Note:", samples=7)
    choices = ("A", "B", prompt.tie) if ties else ("A", "B")
    assert pair == SilentBallot(
        question=pair.question, metric="preferred", choices=choices, prefill="Besser:", samples=7
    )
