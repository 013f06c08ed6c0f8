"""A sample of the table that `python -m tests.vendors` makes: every study, each with a vendor that is drawn."""

from __future__ import annotations

import random

import pytest

from tests.vendors.attacks import FORMS_OF_THOUGHT, FormsInTurn
from tests.vendors.base import KINDS, standins
from tests.vendors.table import studies, try_forms, try_out

SEED = 23
# The Anthropic SDK warns about models near their end of life; which ones depends on its version.
pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")


def drawn() -> list[tuple[str, str]]:
    """Pairs of a study and a vendor: every study once, and every vendor, if there are enough studies."""
    names = [trial.name for trial in studies()]
    rng = random.Random(SEED)
    vendors = sorted(standins())
    rng.shuffle(vendors)
    return [(name, vendors[nth % len(vendors)]) for nth, name in enumerate(rng.sample(names, len(names)))]


@pytest.mark.nightly
@pytest.mark.parametrize(("study", "vendor"), drawn())
def test_a_study_ends_as_it_should_whatever_the_replies(study, vendor):
    trial = next(trial for trial in studies() if trial.name == study)
    plain = None
    for kind in KINDS:
        cell = try_out(trial, standins()[vendor], kind, plain)
        assert cell.faults == (), f"{kind}: {cell.ending.said}"
        plain = plain or cell.ending


@pytest.mark.nightly
@pytest.mark.parametrize("vendor", sorted(standins()))
def test_no_form_of_thought_is_taken_for_the_answer(vendor):
    """Every form, in every study that there is."""
    for trial in studies():
        cells = try_forms(trial, standins()[vendor])
        assert cells.keys() == FORMS_OF_THOUGHT.keys()
        assert {form: cell.faults for form, cell in cells.items() if cell.faults} == {}, trial.name


@pytest.mark.parametrize(("study", "vendor"), drawn()[:2])
def test_forms_of_thought_are_not_taken_for_the_answer_in_a_sample(study, vendor):
    trial = next(trial for trial in studies() if trial.name == study)
    assert [cell.faults for cell in try_forms(trial, standins()[vendor]).values() if cell.faults] == []


def test_a_wrong_score_is_a_fault(monkeypatch):
    """If thoughts were part of the content, as they once were, the table would show it."""
    from parley.agents import structured
    from parley.agents.models import reply
    from parley.agents.models.thoughts import Split

    trial = next(trial for trial in studies() if trial.name == "rubric")
    server = standins()["server"]
    plain = try_out(trial, server, "plain").ending
    assert try_out(trial, server, "thinking", plain).word == "read"
    assert try_out(trial, server, "plain", plain, FormsInTurn(["harmony"])).word == "read"
    assert try_out(trial, server, "filtered", plain).word == ("none" if server.marks_refusals else "read")
    for module in (reply, structured):
        monkeypatch.setattr(module, "split_thought", lambda text, **_: Split("", text))
    assert try_out(trial, server, "thinking", plain).faults != ()
    assert try_out(trial, server, "plain", plain, FormsInTurn(["harmony"])).faults != ()


def test_rules_about_refusals_do_not_hide_that_every_score_was_refused():
    """The statements of a debate are texts, and rules about them find the refusals: no reply of the referee is read."""
    trial = next(trial for trial in studies() if trial.name == "rldf")
    cell = try_out(trial, standins()["server"], "refused")
    assert (cell.word, cell.faults) == ("none", ())
    assert "none of 8 replies could be read (8 refused)" in cell.ending.said
