"""`parley run malibu --generator`: a model writes the responses, others judge them; one command, one budget."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parley as library
from parley.agents import ConfigError
from parley.scenarios import Suite, load_suite
from tests.panels import ONE_CELL, RUN_PANEL

QUICK = {scenario.id: scenario for scenario in load_suite("tiny")[0].scenario}
GYM, GARAGE = QUICK["fitness-desk-worker"], QUICK["engineering-garage-crack"]
SHORT = {"response_1": "I stretch.", "response_2": "I bend."}
SMALL = ("--identities", "gender", "--phases", "1", "--rounds", "1", "--no-controls", "--quiet")
SETTINGS: dict[str, Any] = {"identities": ["gender"], "phases": [1], "rounds": 1, "controls": False, **ONE_CELL}
JUDGED = 2 * 4
"""Calls for a scenario: two labels, four judges, one round."""


def good(scenario: Any) -> dict[str, str]:
    first, second = scenario.responses
    return {"response_1": first, "response_2": second}


@pytest.fixture(autouse=True)
def bare(place: Path) -> Path:
    """A suite of two scenarios without responses."""
    scenarios = [scenario.model_copy(update={"responses": ()}) for scenario in (GYM, GARAGE)]
    path = place / "bare.toml"
    path.write_text(Suite(schema=1, name="bare", version="1", scenario=(*scenarios,)).to_toml(), "utf-8")
    return path


@pytest.fixture
def command(author: Any, server: Any) -> tuple[str, ...]:
    """The author's first pair for the gym is refused, its first pair for the garage is good."""
    author.writes(GYM.text, SHORT, good(GYM))
    author.writes(GARAGE.text, good(GARAGE))
    models = ("--model", server.model(), "--generator", author.model)
    return (*RUN_PANEL, "--suite", "bare.toml", *SMALL, *models, "--concurrency", "1", "--out", "judged.sqlite")


def judged(server: Any) -> list[Any]:
    return [body for body in server.asked if body["model"] == "judge"]


def written(place: Path) -> Path:
    (path,) = (place / "runs").glob("malibu-respond-author-*.sqlite")
    return path


# From beginning to end


def test_responses_are_written_first_and_then_judged(
    parley: Callable[..., Any], command: tuple[str, ...], author: Any, server: Any, place: Path, run_file: Any
) -> None:
    result = parley(*command)

    assert result.status == 0, result.err
    assert re.findall(r"(\d+) of (\d+) units done: (\S+)", result.out) == [
        ("2", "2", str(written(place).relative_to(place))),
        ("4", "4", "judged.sqlite"),
    ]
    assert len(author.asked) == 3
    assert len(judged(server)) == 2 * JUDGED
    assert [body["model"] for body in server.asked[:3]] == ["author"] * 3, (
        "no judge is called before all responses are written"
    )
    shown = [text for (text,) in run_file("judged.sqlite").rows("SELECT text FROM transcript WHERE seq = 0")]
    assert sum(f'"{GYM.responses[0]}"' in text for text in shown) == 2
    assert sum(f'"{GARAGE.responses[0]}"' in text for text in shown) == 2
    assert not any("I stretch." in text for text in shown), "refused responses are not judged"


def test_workers_write_and_judge_what_one_process_does(
    parley: Callable[..., Any], command: tuple[str, ...], place: Path, run_file: Any
) -> None:
    assert parley(*command, "--no-cache").status == 0
    judging, writing = run_file("judged.sqlite").story(), run_file(written(place)).story()
    shutil.rmtree(place / "runs")
    (place / "judged.sqlite").unlink()

    result = parley(*command, "--no-cache", "--executor", "processes", "--workers", "2")

    assert result.status == 0, result.err
    assert run_file(written(place)).story() == writing
    assert run_file("judged.sqlite").story() == judging


def test_the_same_from_python(command: tuple[str, ...], author: Any, server: Any, place: Path, run_file: Any) -> None:
    result = library.run(
        "malibu", suite="bare.toml", model=server.model(), generator=author.model, out="judged.sqlite", **SETTINGS
    )

    assert result.complete
    assert (result.progress.done, result.progress.total) == (4, 4)
    assert run_file("judged.sqlite").count() == 4
    assert run_file(written(place)).count() == 2


def test_written_responses_replace_frozen_ones(author: Any, run_file: Any) -> None:
    first, second = GYM.responses
    author.writes(GYM.text, {"response_1": second, "response_2": first})

    library.run(
        "malibu",
        suite="tiny",
        scenarios=[GYM.id],
        yardstick="off",
        model="sim/judge",
        generator=author.model,
        out="judged.sqlite",
        **SETTINGS,
    )

    for (text,) in run_file("judged.sqlite").rows("SELECT text FROM transcript WHERE seq = 0"):
        assert f'"{second}"' in text


def test_a_second_run_sends_nothing_and_another_judge_reuses_the_responses(
    parley: Callable[..., Any], command: tuple[str, ...], author: Any, server: Any
) -> None:
    parley(*command)
    asked = len(server.asked)

    assert parley(*command).status == 0
    assert len(server.asked) == asked

    other = [{server.model(): "sim/judge", "judged.sqlite": "other.sqlite"}.get(word, word) for word in command]
    assert parley(*other).status == 0
    assert len(server.asked) == asked, "the responses are stored"


def test_a_dry_run_counts_both_stages(
    parley: Callable[..., Any], command: tuple[str, ...], server: Any, place: Path, author: Any
) -> None:
    plan = parley(*command, "--dry-run", "--json").json
    words = parley(*command, "--dry-run").out

    assert plan["models"] == [author.model, server.model()]
    assert plan["units"] == 2 + 4
    assert plan["calls"] == 2 + 2 * JUDGED
    assert plan["run"] == "judged.sqlite"
    assert "first        malibu-respond: 2 units, at least one call each" in words
    assert server.asked == []
    assert [path.name for path in place.iterdir()] == ["bare.toml"]


# Refused responses


def test_a_scenario_without_a_good_pair_is_left_out(
    parley: Callable[..., Any], command: tuple[str, ...], author: Any, run_file: Any
) -> None:
    author.writes(GYM.text, SHORT)

    assert parley(*command).status == 0

    assert run_file("judged.sqlite").rows("SELECT DISTINCT facets ->> 'scenario' FROM units") == [(GARAGE.id,)]


def test_the_number_of_scenarios_left_out_is_printed(
    parley: Callable[..., Any], command: tuple[str, ...], author: Any
) -> None:
    author.writes(GYM.text, SHORT)

    result = parley(*command)

    assert re.search(r"\b1\b.*(?:left out|no pair|not accepted|refused)", result.out + result.err)


def test_if_nothing_is_accepted_nothing_is_judged(
    parley: Callable[..., Any], command: tuple[str, ...], author: Any, server: Any, place: Path
) -> None:
    author.writes(GYM.text, SHORT)
    author.writes(GARAGE.text, SHORT)

    result = parley(*command)

    assert result.status == 2
    assert len(result.complaints) == 1
    assert f"no pair of responses by {author.model} was accepted" in result.complaints[0]
    assert "Traceback" not in result.err
    assert judged(server) == []
    assert not (place / "judged.sqlite").exists()


# One budget


@pytest.mark.parametrize(("calls", "authors", "judges"), [(2, 2, 0), (3, 3, 0), (10, 3, 7)])
def test_one_budget_covers_both_stages_and_a_larger_one_resumes(
    parley: Callable[..., Any],
    command: tuple[str, ...],
    author: Any,
    server: Any,
    place: Path,
    run_file: Any,
    calls: int,
    authors: int,
    judges: int,
) -> None:
    stopped = parley(*command, "--budget-calls", calls)

    assert stopped.status == 1
    assert stopped.complaints == [f"parley: stopped: the budget of {calls} calls is spent"]
    assert "run the same command again to resume" in stopped.err
    assert (len(author.asked), len(judged(server))) == (authors, judges)

    assert parley(*command, "--budget-calls", 3 + 2 * JUDGED).status == 0
    assert (len(author.asked), len(judged(server))) == (3, 2 * JUDGED), "nothing was paid for twice"
    run_file("judged.sqlite").check()
    run_file(written(place)).check()


def test_a_budget_from_python_can_end_in_the_first_stage(command: tuple[str, ...], author: Any, server: Any) -> None:
    options = library.Options(budget_calls=1, concurrency=1)

    result = library.run(
        "malibu",
        suite="bare.toml",
        model=server.model(),
        generator=author.model,
        out="judged.sqlite",
        options=options,
        **SETTINGS,
    )

    assert not result.complete
    assert result.stopped == "the budget of 1 call is spent"
    assert not Path("judged.sqlite").exists()


# Interruptions


def test_a_run_killed_in_both_stages_equals_an_undisturbed_one(
    parley: Callable[..., Any],
    start: Callable[..., Any],
    command: tuple[str, ...],
    author: Any,
    server: Any,
    place: Path,
    run_file: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.delay = 0.2
    writing = start(*command)
    writing.wait_for(lambda: len(author.asked) >= 2, seconds=180)
    writing.kill()
    judging = start(*command)
    judging.wait_for(lambda: len(judged(server)) >= 6, seconds=180)
    judging.kill()
    server.delay = 0.0
    assert run_file(written(place)).count() == 2
    assert run_file("judged.sqlite").count() < 4

    assert parley(*command).status == 0

    killed = [run_file(path).story() for path in (written(place), place / "judged.sqlite")]
    (place / "undisturbed").mkdir()
    shutil.copy(place / "bare.toml", place / "undisturbed")
    monkeypatch.chdir(place / "undisturbed")
    assert parley(*command, "--no-cache").status == 0
    assert killed == [
        run_file(path).story() for path in (written(place / "undisturbed"), place / "undisturbed" / "judged.sqlite")
    ]


def test_a_server_failure_while_writing_stops_the_run_before_judging(
    parley: Callable[..., Any], command: tuple[str, ...], author: Any, server: Any
) -> None:
    server.cuts_short = True

    result = parley(*command)

    assert result.status == 1
    assert "2 units failed, the first with: server/author: " in result.complaints[0]
    assert judged(server) == []

    server.cuts_short = False
    assert parley(*command).status == 0


def test_changed_responses_are_noticed(
    parley: Callable[..., Any], command: tuple[str, ...], author: Any, place: Path
) -> None:
    """If the first stage is deleted and gives other responses, the second cannot be resumed."""
    parley(*command)
    written(place).unlink()
    shutil.rmtree(place / "home")
    first, second = GARAGE.responses
    author.writes(GARAGE.text, {"response_1": second, "response_2": first})

    result = parley(*command)

    assert result.status == 1
    assert "judged.sqlite contains a different run (suite bare 1 has changed)" in result.err


# Keys


def test_a_missing_key_for_the_judges_is_noticed_before_the_author_is_called(
    parley: Callable[..., Any], command: tuple[str, ...], server: Any
) -> None:
    result = parley(*command, "--model", "openai/gpt-4o-mini")

    assert result.status == 2
    assert result.err == "parley: openai/gpt-4o-mini needs a key: set OPENAI_API_KEY in the environment\n"
    assert server.asked == []


def test_a_missing_key_is_noticed_from_python(command: tuple[str, ...], author: Any, server: Any) -> None:
    with pytest.raises(ConfigError, match="needs a key"):
        library.run("malibu", suite="bare.toml", model="openai/gpt-4o-mini", generator=author.model, **SETTINGS)
    assert server.asked == []
