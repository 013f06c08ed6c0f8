"""A sample of the table that `python -m tests.vendors` makes: every study, each with a vendor that is drawn."""

from __future__ import annotations

import random

import pytest

from tests.vendors.base import KINDS, standins
from tests.vendors.table import studies, try_out

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
def test_a_study_ends_as_it_should_whatever_the_replies(study: str, vendor: str) -> None:
    trial = next(trial for trial in studies() if trial.name == study)
    plain = None
    for kind in KINDS:
        cell = try_out(trial, standins()[vendor], kind, plain)
        assert cell.faults == (), f"{kind}: {cell.ending.said}"
        plain = plain or cell.ending


def test_a_wrong_score_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """If thoughts were part of the content, as they once were, the table would show it."""
    from parley.agents import structured
    from parley.agents.models import reply
    from parley.agents.models.thoughts import Split

    trial = next(trial for trial in studies() if trial.name == "rubric")
    server = standins()["server"]
    plain = try_out(trial, server, "plain").ending
    assert try_out(trial, server, "thinking", plain).word == "read"
    assert try_out(trial, server, "plain", plain, "harmony").word == "read"
    assert try_out(trial, server, "filtered", plain).word == ("none" if server.marks_refusals else "read")
    for module in (reply, structured):
        monkeypatch.setattr(module, "split_thought", lambda text, **_: Split("", text))
    assert try_out(trial, server, "thinking", plain).faults != ()
