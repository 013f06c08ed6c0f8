"""The benchmark of copied revisions, on a simulated writer and on a server that notes the seeds."""

from __future__ import annotations

import asyncio

from benchmarks.copies import measure, shipped_beginnings, with_one_seed
from parley.agents import Client, Critique, Persona, model
from parley.agents.models.session import session
from parley.judging.study import Unit


def test_both_arms_run_the_same_units_and_count_what_happened(tmp_path):
    data = str(shipped_beginnings(tmp_path))
    derived, one = asyncio.run(measure("sim/m?toxic=1&heeds=0&malformed=0.3", data, "moderate", 4, [1.0]))
    assert (derived.seeds, one.seeds) == ("derived", "one")
    for arm in (derived, one):
        assert (arm.units, arm.drafts - arm.revisions, arm.judged) == (4, 4, arm.drafts)
        assert arm.revisions > 0
    assert 0 < derived.unread + one.unread < derived.judged + one.judged


async def test_one_seed_is_that_of_the_first_draft_in_every_call():
    seeds, writer = [], model("sim/m")

    class Noted(Client):
        async def send(self, request):
            seeds.append(request.options["seed"])
            return await writer.send(request)

    unit = Unit("u", {"prompt": "p", "completion": 0})
    with session(with_one_seed(unit, 0)):
        loop = Critique(
            Persona("Writer", "You write."),
            {"x": Persona("Critic", "You look.")},
            criteria={"x": "> 100"},
            model=Noted("sim/m"),
            options={"seed": 1},
        )
        await loop.converse("Write.")
    assert len(seeds) >= 6, "three drafts, each judged"
    assert len(set(seeds)) == 1
