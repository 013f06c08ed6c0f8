"""Debates: who speaks when, who reads what, when they end, and which AutoGen agents can take part."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import MessageFactory, StopMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken

from parley.agents import (
    Budget,
    ConfigError,
    Cue,
    Debate,
    Persona,
    ServerFault,
    Session,
    Turn,
    Usage,
    load_personas,
    model,
    record_calls,
    session,
    shuffled,
    simultaneous,
)
from parley.agents.messages import load_messages, save_messages
from parley.base.errors import BudgetSpent
from tests.agents.common import ADA, BEN, CY, SIM, TASK, Opinion
from tests.servers import until

RAY = Persona("Ray", "You are Ray, the referee.")


def speakers(turns: Sequence[Turn]) -> list[str]:
    return [turn.speaker for turn in turns]


def sources(turn: Turn) -> list[str]:
    """The sources of the messages in a turn's prompt, in order, without the persona."""
    persona = turn.calls[0].prompt[-1].text == turn.persona
    pieces = [piece for piece in turn.calls[0].prompt if piece.role != "system"]
    return [piece.source for piece in (pieces[:-1] if persona else pieces)]


async def test_two_rounds_in_the_given_order_in_which_all_read_what_was_said():
    transcript = await Debate([ADA, BEN], model=SIM, rounds=2).converse(TASK)
    assert speakers(transcript.turns) == ["user", "Ada", "Ben", "Ada", "Ben"]
    assert [turn.role for turn in transcript.turns] == ["narrator"] + ["debater"] * 4
    assert [turn.round for turn in transcript.spoken()] == [1, 1, 2, 2]
    assert [turn.persona for turn in transcript.spoken(round=1)] == [ADA.about, BEN.about]
    assert transcript.stop_reason == "2 rounds completed"
    assert str(transcript).startswith(f"[0] user: {TASK}\n\n[1] Ada: ")
    heard = ["user", "Ada", "Ben", "Ada"]
    assert [sources(turn) for turn in transcript.spoken()] == [heard[:nth] for nth in range(1, 5)]
    first, _, third, _ = transcript.spoken()
    own = [(piece.role, piece.text) for piece in third.calls[0].prompt if piece.source == "Ada"]
    assert own == [("assistant", first.text)]
    assert third.calls[0].prompt[0] == ("system", "", ADA.about)


async def test_a_shuffled_order_differs_between_rounds_and_depends_on_the_seed():
    orders = []
    for seed in (1, 1, 2):
        debate = Debate([ADA, BEN, CY], model=SIM, rounds=6, order=shuffled(seed))
        orders.append(speakers((await debate.converse(TASK)).spoken()))
    rounds = [tuple(orders[0][start : start + 3]) for start in range(0, 18, 3)]
    assert {tuple(sorted(each)) for each in rounds} == {("Ada", "Ben", "Cy")}
    assert (len(set(rounds)) > 1, orders[0] == orders[1] != orders[2]) == (True, True)


async def test_a_custom_order():
    def backwards_then_ben(round: int, names: Sequence[str]) -> Sequence[Sequence[str]]:
        return [[name] for name in reversed(names)] if round == 1 else [["Ben"]]

    transcript = await Debate([ADA, BEN, CY], model=SIM, rounds=2, order=backwards_then_ben).converse(TASK)
    assert speakers(transcript.spoken()) == ["Cy", "Ben", "Ada", "Ben"]
    debate = Debate([ADA], model=SIM, order=lambda round, names: [["Zoe"]])
    with pytest.raises(ConfigError, match="the speaking order names 'Zoe', who does not take part"):
        await debate.converse(TASK)


async def test_an_agent_reads_only_what_it_may_see():
    def only_the_referee_sees_all(reader: Cue, turn: Turn) -> bool:
        return reader.role == "referee"

    debate = Debate([ADA, BEN], model=SIM, rounds=2, referee=RAY, sees=only_the_referee_sees_all)
    transcript = await debate.converse(TASK)
    heard = [["user"], ["user"], ["user", "Ada"], ["user", "Ben"]]
    assert [sources(turn) for turn in transcript.spoken("debater")] == heard
    assert sources(transcript.spoken("referee")[1]) == ["user", "Ada", "Ben", "Ray", "Ada", "Ben"]


@pytest.mark.parametrize(
    ("fence", "quoted"),
    [
        (False, {"Ada": [], "Ben": [], "Ray": []}),
        (True, {"Ada": ["Ben", "Ray"], "Ben": ["Ada", "Ray", "Ada"], "Ray": ["Ada", "Ben", "Ada", "Ben"]}),
        ("referee", {"Ada": [], "Ben": [], "Ray": ["Ada", "Ben", "Ada", "Ben"]}),
    ],
)
async def test_others_words_are_quoted_for_all_or_for_one_role_and_stored_unchanged(fence, quoted):
    transcript = await Debate([ADA, BEN], model=SIM, rounds=2, referee=RAY, fence=fence).converse(TASK)
    said = [(turn.speaker, turn.text) for turn in transcript.spoken()]
    for turn in transcript.spoken(round=2):
        pieces = [piece for piece in turn.calls[0].prompt if piece.text.startswith("<<<")]
        assert [piece.source for piece in pieces] == quoted[turn.speaker]
        assert all(any(f"\n> {text}\n" in piece.text for who, text in said if who == piece.source) for piece in pieces)
    assert not any("<<<" in text for _, text in said)


async def test_instructions_precede_each_turn_and_are_recorded_once_per_round():
    def instruct(cue: Cue) -> str | None:
        return {1: "Open.", 2: None, 3: f"Close, {cue.speaker}."}[cue.round]

    transcript = await Debate([ADA, BEN], model=SIM, rounds=3, instructions=instruct).converse(TASK)
    narrated = [(turn.round, turn.text) for turn in transcript.turns if turn.role == "narrator"]
    assert narrated == [(0, TASK), (1, "Open."), (3, "Close, Ada."), (3, "Close, Ben.")]
    last = {turn.speaker: [p.text for p in turn.calls[0].prompt][-1] for turn in transcript.spoken(round=3)}
    assert last == {"Ada": "Close, Ada.", "Ben": "Close, Ben."}
    opening = [[p.text for p in turn.calls[0].prompt] for turn in transcript.spoken(round=1)]
    assert [texts.count("Open.") for texts in opening] == [1, 1]


async def test_replies_are_parsed_as_the_type_requested_for_each_turn():
    settings = {"rounds": 2, "reply_type": lambda cue: Opinion if cue.round == 2 else None}
    free, scored = (await Debate([ADA], model=f"{SIM}?base=6&noise=0", **settings).converse(TASK)).spoken()
    assert (free.verdict, free.parse_status) == (None, None)
    assert (scored.verdict, scored.parse_status) == (Opinion(score=6), "ok")
    _, unread = (await Debate([ADA], model=f"{SIM}?malformed=1", **settings).converse(TASK)).spoken()
    assert (unread.verdict, unread.parse_status, len(unread.calls)) == (None, "unparsed", 2)


async def test_it_can_be_cancelled_and_a_failure_cancels_the_others():
    client, token = model(f"{SIM}?latency=60"), CancellationToken()
    transcript = asyncio.ensure_future(Debate([ADA, BEN], model=client).converse(TASK, token))
    await until(lambda: client.throttle.under_way)
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await transcript
    assert client.throttle.under_way == 0
    broken = Persona("Broken", "You fail.", model=f"{SIM}?fail=1&retries=0")
    with pytest.raises(ServerFault):
        await Debate([ADA, broken], model=client, order=simultaneous).converse(TASK)
    assert client.throttle.under_way == 0


async def test_a_running_debate_is_neither_run_nor_reset_nor_loaded(server):
    server.says("Yes.")
    async with Debate([ADA, BEN], model=server.name, rounds=2, max_turns=1) as debate:
        state, turns = await debate.save_state(), debate.stream(TASK)
        assert (await anext(turns)).text == TASK
        for refused, said in (
            (debate.converse(TASK), " already; wait until it has ended, or make a second one"),
            (debate.reset(), "; it can be reset when it has ended"),
            (debate.load_state(state), "; a state can be loaded when it has ended"),
        ):
            with pytest.raises(ConfigError, match=f"^'debate' is running{said}$"):
                await refused
        assert speakers([turn async for turn in turns]) == ["Ada"]
        assert debate.transcript.stop_reason == "Maximum number of turns 1 reached."
        with pytest.raises(ConfigError, match="belongs to nobody, but 'debate' has Ada, Ben; load it into"):
            await debate.load_state({})
        (token := CancellationToken()).cancel()
        with pytest.raises(asyncio.CancelledError):
            await debate.converse(None, token)
        http = debate._seats[0].agent.client._session  # type: ignore[attr-defined]
    assert (len(server.asked), http.closed) == (1, True)


async def test_a_condition_that_is_met_before_it_begins():
    await (condition := MaxMessageTermination(1))([TextMessage(content="Hello.", source="user")])
    transcript = await Debate([ADA], model=SIM, termination_condition=condition).converse(TASK)
    reason = "its termination condition was met before it began"
    assert (speakers(transcript.turns), transcript.stop_reason) == (["user"], reason)


def a_pair_of_assistants() -> RoundRobinGroupChat:
    agents = [AssistantAgent(each, model(SIM), system_message=f"You are {each}.") for each in ("Xi", "Yu")]
    return RoundRobinGroupChat(agents, name="pair", max_turns=2)


@pytest.mark.parametrize(
    ("make", "calls"),
    [
        (lambda: AssistantAgent("pair", model(SIM)), 1),
        (a_pair_of_assistants, 2),
        (lambda: Debate([BEN, CY], model=SIM, rounds=1, name="pair"), 2),
    ],
)
async def test_an_agent_a_team_or_a_debate_takes_part_with_its_last_message(make, calls):
    team, ada, again, _ = (await Debate([make(), ADA], model=SIM, rounds=2).converse(TASK)).spoken()
    assert (team.speaker, team.role, len(team.calls)) == ("pair", "debater", calls)
    assert (team.text, again.text) == (team.calls[-1].reply, again.calls[-1].reply)
    assert (sources(ada), "Ada" in sources(again)) == (["user", "pair"], True)


async def test_a_debate_as_an_agent_is_saved_paused_and_reset_with_it():
    debate, token = Debate([ADA, BEN], model=SIM, rounds=2, max_turns=1), CancellationToken()
    agent, task = debate.as_agent(description="Two."), TextMessage(content=TASK, source="user")
    assert (agent.name, agent.description, agent.produced_message_types) == ("debate", "Two.", (TextMessage,))
    said = await agent.on_messages([task], token)
    inner = [message.source for message in said.inner_messages or ()]
    assert (inner, said.chat_message.source) == (["Ada"], "debate")
    assert said.chat_message.to_model_text() == debate.transcript.spoken()[0].text
    state = await agent.save_state()
    await agent.on_reset(token)
    assert await agent.save_state() == await Debate([ADA, BEN], model=SIM).save_state() != state
    await agent.load_state(state)
    assert (await agent.save_state(), state["speaking order"]["step"]) == (state, 1)
    await agent.on_pause(token)
    waiting = asyncio.ensure_future(agent.on_messages([task], token))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await agent.on_resume(token)
    assert [message.source for message in (await waiting).inner_messages or ()] == ["Ben"]
    silent = Debate([ADA], model=SIM, termination_condition=MaxMessageTermination(1)).as_agent()
    with pytest.raises(ConfigError, match=r"^the team 'debate' said nothing \(Maximum number of messages 1 reached"):
        await silent.on_messages([task], token)


async def test_it_runs_as_an_autogen_team_and_in_one():
    debate = Debate([ADA, BEN], model=SIM, rounds=1, instructions=lambda cue: "Be brief.")
    assert (await debate.run(task=TASK)).stop_reason == "1 round completed"
    opening = [TextMessage(content="Hello.", source="user"), TextMessage(content=TASK, source="Zoe")]
    quiet = await debate.run(task=opening, output_task_messages=False)
    assert [message.source for message in quiet.messages] == ["Ada", "Ben"]
    team = RoundRobinGroupChat(
        [Debate([ADA, BEN], model=SIM, rounds=1), AssistantAgent("Guest", model(SIM))], max_turns=2
    )
    assert [message.source for message in (await team.run(task=TASK)).messages] == ["user", "Ada", "Ben", "Guest"]


async def test_usage_by_speaker_adds_up_and_one_unknown_price_makes_the_cost_unknown(server):
    client = model(f"{SIM}?price_in=2&price_out=4")
    usage = (await Debate([ADA, BEN], model=client, rounds=2, chair=CY).converse(TASK)).usage()
    assert {name: spent.calls for name, spent in usage.items()} == {"Ada": 2, "Ben": 2, "Cy": 1}
    total = client.total_usage()
    assert sum(spent.prompt_tokens for spent in usage.values()) == total.prompt_tokens
    assert sum(spent.completion_tokens for spent in usage.values()) == total.completion_tokens
    cost = (2 * total.prompt_tokens + 4 * total.completion_tokens) / 1e6
    assert sum(spent.cost or 0 for spent in usage.values()) == pytest.approx(cost)
    server.says("Yes.")
    unpriced = (await Debate([ADA], model=server.client(), rounds=2).converse(TASK)).usage()
    assert unpriced == {"Ada": Usage(calls=2, prompt_tokens=24, completion_tokens=6, cost=None)}


@pytest.mark.parametrize(
    ("participants", "settings", "said"),
    [
        ([ADA, ADA], {}, "two participants are called 'Ada'; names must differ"),
        ([ADA], {"chair": ADA}, "two participants are called 'Ada'; names must differ"),
        ([], {}, "needs at least one participant"),
        ([ADA], {"rounds": 0}, "needs at least one round, got 0"),
        ([ADA], {"max_turns": 0}, "max_turns must be at least 1, got 0"),
        ([ADA], {"rounds": 2, "blind_rounds": 3}, "blind_rounds must be from 0 to 2, the number of rounds; got 3"),
        ([ADA], {"rounds": 2, "blind_rounds": -1}, "blind_rounds must be from 0 to 2, the number of rounds; got -1"),
        (["Ada"], {}, "cannot take part"),
        ([Persona("user", "You are nobody.")], {}, "no participant may be called 'user'"),
        ([ADA], {"model": 3}, "is not a model: write provider/model, or give an AutoGen client"),
    ],
)
def test_a_debate_that_cannot_be_held_is_refused(participants, settings, said):
    with pytest.raises(ConfigError) as refused:
        Debate(participants, **{"model": SIM, **settings})
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", r"it has no \[\[persona\]\] table"),
        ("[[persona]", "panel.toml: "),
        ('[[persona]]\nname = "Ada"', "about"),
        ('[[persona]]\nname = "Ada L"\nabout = "Ada"', "expected a single word without spaces, not 'Ada L'"),
        ('[[persona]]\nname = "Ada"\nabout = 3', "panel.toml: "),
        ('[[persona]]\nname = "Ada"\nabout = "Ada"\nage = 3', "age"),
        (b'[[persona]]\nname = "Andr\xe9"\n', "panel.toml: "),
        (None, "No such file"),
    ],
)
def test_a_file_of_personas_and_one_that_cannot_be_used(tmp_path, text, problem):
    path = tmp_path / "panel.toml"
    path.write_text('[[persona]]\nname = "Ada"\nabout = "You are Ada."\nmodel = "sim/judge"\n')
    assert load_personas(path) == [Persona("Ada", "You are Ada.", "sim/judge")]
    path.unlink()
    if text is not None:
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigError, match=problem):
        load_personas(path)


# Blind rounds

PANEL = [Persona(name, f"You are {name}, a councillor.") for name in ("Ada", "Ben", "Cy", "Dee")]
NAMES = [persona.name for persona in PANEL]


async def test_what_was_said_blindly_is_read_by_all_others_afterwards_in_speaking_order():
    transcript = await Debate(PANEL, model=SIM, rounds=3, blind_rounds=1).converse(TASK)
    blind, discussed = transcript.spoken(round=1), transcript.spoken(round=2)
    assert [turn.speaker for turn in transcript.spoken()] == NAMES * 3
    assert [sources(turn) for turn in blind] == [["user"]] * 4
    assert sources(discussed[0]) == ["user", "Ada", "Ben", "Cy", "Dee"]
    assert sources(discussed[1]) == ["user", "Ben", "Ada", "Cy", "Dee", "Ada"], "its own turn is the assistant's"
    texts = {piece.source: piece.text for piece in discussed[1].calls[0].prompt if piece.source in ("Cy", "Dee")}
    assert texts == {"Cy": blind[2].text, "Dee": blind[3].text}


async def test_the_calls_of_a_blind_round_are_concurrent_and_those_of_a_discussion_are_not(server):
    server.says("Yes.")
    server.delay = 0.3  # enough for all that may start to overlap
    await Debate(PANEL, model=server.client(), rounds=1, blind_rounds=1).converse(TASK)
    assert server.most_under_way == 4
    server.most_under_way = 0
    await Debate(PANEL, model=server.client(), rounds=1).converse(TASK)
    assert server.most_under_way == 1


async def test_several_blind_rounds_keep_everything_back_until_the_last_is_over():
    transcript = await Debate(PANEL[:2], model=SIM, rounds=3, blind_rounds=2, referee=RAY).converse(TASK)
    ada, ben = transcript.spoken("debater", round=2)
    assert (sources(ada), sources(ben)) == (["user", "Ada"], ["user", "Ben"])
    assert sources(transcript.spoken("referee", round=1)[0]) == ["user", "Ada", "Ben"], "the referee hears them"
    third = sources(transcript.spoken("debater", round=3)[0])
    assert third == ["user", "Ada", "Ada", "Ben", "Ray", "Ben", "Ray"]


async def test_a_blind_round_is_completed_before_a_termination_condition_ends_the_debate():
    debate = Debate(PANEL, model=SIM, rounds=3, blind_rounds=1, termination_condition=MaxMessageTermination(2))
    transcript = await debate.converse(TASK)
    assert [turn.speaker for turn in transcript.spoken()] == NAMES, "their calls were already made"
    again = await debate.converse("And trams?")
    assert sources(again.spoken()[0]) == ["user", *NAMES, "user"], "and what they said was delivered"


async def test_a_budget_ends_a_blind_round_and_no_reply_that_was_paid_for_is_lost():
    client, budget = model(f"{SIM}?latency=0.01"), Budget(max_calls=2)
    with session(Session("0", budget=budget)), record_calls() as calls, pytest.raises(BudgetSpent):
        await Debate(PANEL, model=client, rounds=2, blind_rounds=1).converse(TASK)
    assert len(calls) == budget.calls == 2
    assert client.throttle.under_way == 0


def test_messages_are_saved_by_their_type_and_texts_plainly():
    known, said = MessageFactory(), [TextMessage(content="Hm.", source="Ada"), StopMessage(content="No.", source="Ben")]
    saved = save_messages(said, known)
    assert [(each["content"], each.get("type")) for each in saved] == [("Hm.", None), ("No.", "StopMessage")]
    assert [type(message) for message in load_messages(saved, known)] == [TextMessage, StopMessage]
