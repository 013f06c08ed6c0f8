"""`parley run malibu-derive|malibu-respond --to FILE`: a model writes a suite, and no file of the user's is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parley.scenarios import Scenario, Suite, load_suite
from tests.panels import RUN_PANEL

FULL = load_suite("full")[0]
GYM = next(base for base in FULL.base if base.id == "fitness")
LAW = next(base for base in FULL.base if base.id == "law")
FIRST, SECOND, THIRD, *_ = [scenario for scenario in FULL.scenario if scenario.base == "fitness"]
SHORT = {"response_1": "I stretch.", "response_2": "I bend."}
COMMON = ("--quiet", "--concurrency", "1")


def idea(like: Scenario) -> dict[str, str]:
    return {**{key: getattr(like, key) for key in ("profession", "role", "setting")}, "scenario": like.text}


def good(scenario: Scenario) -> dict[str, str]:
    assert scenario.responses
    return dict(zip(("response_1", "response_2"), scenario.responses, strict=True))


@pytest.fixture(autouse=True)
def suites(place: Path) -> None:
    """bases.toml has two bases and no scenario; bare.toml two scenarios without responses."""
    (place / "bases.toml").write_text(Suite(schema=1, name="bases", version="1", base=(GYM, LAW)).to_toml(), "utf-8")
    bare = tuple(scenario.model_copy(update={"responses": ()}) for scenario in (FIRST, SECOND))
    whole = Suite(schema=1, name="bare", version="1", base=(GYM,), scenario=bare)
    (place / "bare.toml").write_text(whole.to_toml(), "utf-8")


@pytest.fixture
def derive(author: Any) -> tuple[str, ...]:
    author.writes(GYM.text, idea(FIRST), idea(FIRST), idea(SECOND))
    flags = ("--bases", "fitness", "--suite", "bases.toml", "--count", "2", "--to", "bases-derived.toml")
    return ("run", "malibu-derive", *flags, *COMMON, "--model", author.model)


@pytest.fixture
def respond(author: Any) -> tuple[str, ...]:
    author.writes(FIRST.text, SHORT, good(FIRST))
    author.writes(SECOND.text, good(SECOND))
    flags = ("--suite", "bare.toml", "--to", "bare-responses.toml")
    return ("run", "malibu-respond", *flags, *COMMON, "--model", author.model)


# Writing a suite file


def test_derive_writes_a_suite_file(parley: Callable[..., Any], derive: tuple[str, ...], author: Any) -> None:
    result = parley(*derive, "--to", "new.toml")

    assert result.status == 0, result.err
    assert result.err == ""
    assert result.out.splitlines()[0].startswith("1 of 1 unit done: runs/malibu-derive-author-")
    assert result.out.splitlines()[-1] == "2 scenarios, 0 with responses: new.toml"
    suite = load_suite("new.toml")[0]
    assert [scenario.text for scenario in suite.scenario] == [FIRST.text, SECOND.text]
    assert suite.base == (GYM,)
    assert len(author.asked) == 3, "one was a duplicate"
    assert Path("new.toml").read_text("utf-8").startswith("# Written by malibu-derive-author-")


def test_respond_writes_a_suite_file_that_can_be_run(
    parley: Callable[..., Any], respond: tuple[str, ...], author: Any
) -> None:
    result = parley(*respond, "--to", "whole.toml")

    assert result.status == 0, result.err
    assert result.out.splitlines()[-1] == "2 scenarios, 2 with responses: whole.toml"
    assert [scenario.responses for scenario in load_suite("whole.toml")[0].scenario] == [
        FIRST.responses,
        SECOND.responses,
    ]
    assert parley("scenarios", "validate", "whole.toml").status == 0
    judged = (*RUN_PANEL, "--suite", "whole.toml", "--identities", "gender", "--quiet", "--model", "sim/judge")
    assert "14 of 14 units done" in parley(*judged, "--out", "a.sqlite").out


def test_a_model_replaces_the_suites_responses_and_another_judges_them(
    parley: Callable[..., Any], author: Any, run_file: Any
) -> None:
    """The paper's first two steps, as docs/malibu.md has them: one model writes, the other judges."""
    first, second = good(FIRST).values()
    author.writes(FIRST.text, {"response_1": second, "response_2": first})
    author.writes(SECOND.text, SHORT)
    write = (
        "run",
        "malibu-respond",
        "--suite",
        "full",
        "--anew",
        "--scenarios",
        f"{FIRST.id},{SECOND.id}",
        *COMMON,
        "--model",
    )
    judge = (*RUN_PANEL, "--suite", "new.toml", "--identities", "gender", "--quiet", "--model", "sim/judge")

    assert "2 scenarios, 1 with responses: new.toml" in parley(*write, author.model, "--to", "new.toml").out
    refused = parley(*judge, "--out", "a.sqlite")
    assert refused.complaints == [
        f"parley: new.toml: 1 scenario without responses ({SECOND.id}): write them with "
        "`parley run malibu-respond --suite new.toml --to FILE`"
    ]
    author.writes(SECOND.text, good(SECOND))
    again = ("run", "malibu-respond", "--suite", "new.toml", *COMMON, "--model", author.model, "--to", "whole.toml")
    assert "another --seed asks again" in parley(*again).err, "the same question has the same, cached answers"
    assert parley(*again, "--seed", "1").status == 0

    judged = [{"new.toml": "whole.toml"}.get(word, word) for word in judge]
    assert parley(*judged, "--out", "a.sqlite").status == 0
    shown = [text for (text,) in run_file("a.sqlite").rows("SELECT text FROM transcript WHERE seq = 0")]
    assert any(f'"{second}"' in text for text in shown), "the new response is the first"
    assert not any("I stretch." in text for text in shown), "refused responses are not judged"


def test_derive_and_then_respond(parley: Callable[..., Any], derive: tuple[str, ...], author: Any) -> None:
    """Derive, validate, write responses, validate: all the steps to your own suite."""
    assert parley(*derive).status == 0
    assert parley("scenarios", "validate", "bases-derived.toml").out.count("has no responses yet") == 2
    for scenario in (FIRST, SECOND):
        author.writes(f"Situation: {scenario.text}", good(scenario))

    result = parley(
        "run", "malibu-respond", "--suite", "bases-derived.toml", *COMMON, "--model", author.model,
        "--to", "bases-derived-responses.toml",
    )  # fmt: skip

    assert result.status == 0, result.err
    assert parley("scenarios", "validate", "bases-derived-responses.toml").status == 0


def test_only_a_study_that_writes_has_a_file(parley: Callable[..., Any], respond: tuple[str, ...]) -> None:
    assert parley(*respond).out.splitlines()[-1].endswith(": bare-responses.toml")
    assert Path("bare-responses.toml").exists()
    assert "unknown arguments: --to x.toml" in parley("run", "malibu", "--to", "x.toml").err
    assert "--force needs --to" in parley("run", "malibu-respond", "--suite", "bare.toml", "--force").err


def test_as_json(parley: Callable[..., Any], respond: tuple[str, ...]) -> None:
    result = parley(*respond, "--json")

    assert result.status == 0
    assert (result.json["units"], result.json["done"], result.json["calls"], result.json["stopped"]) == (2, 2, 3, None)
    assert Path("bare-responses.toml").exists()


def test_every_attempt_can_be_read(parley: Callable[..., Any], respond: tuple[str, ...]) -> None:
    run = parley(*respond, "--json").json["run"]

    result = parley("show", run)

    assert "I stretch." in result.out
    assert "They will not do: response 1 has 2 words" in " ".join(result.out.split())


# Files of the user's are not overwritten


@pytest.mark.parametrize("command", ["derive", "respond"])
def test_an_existing_file_is_not_overwritten(
    parley: Callable[..., Any], author: Any, request: pytest.FixtureRequest, command: str, place: Path
) -> None:
    words = request.getfixturevalue(command)
    (place / "mine.toml").write_text("# my own work\n")

    result = parley(*words, "--to", "mine.toml")

    assert (result.status, result.out) == (2, "")
    assert result.err == (
        "parley: mine.toml already exists; choose another file with --to, or overwrite it with --force\n"
    )
    assert (place / "mine.toml").read_text() == "# my own work\n"
    assert author.asked == [], "and no model was called"

    assert parley(*words, "--to", "mine.toml", "--force").status == 0
    assert len(load_suite("mine.toml")[0].scenario) == 2


def test_the_source_suite_is_not_overwritten(parley: Callable[..., Any], respond: tuple[str, ...], place: Path) -> None:
    before = (place / "bare.toml").read_text("utf-8")
    assert parley(*respond, "--to", "bare.toml").status == 2
    assert (place / "bare.toml").read_text("utf-8") == before


def test_an_edited_file_is_not_overwritten(parley: Callable[..., Any], respond: tuple[str, ...], place: Path) -> None:
    parley(*respond)
    edited = (place / "bare-responses.toml").read_text("utf-8").replace(FIRST.role, "a role of my own")
    (place / "bare-responses.toml").write_text(edited, "utf-8")

    parley(*respond)

    assert (place / "bare-responses.toml").read_text("utf-8") == edited


# Budgets and resuming


def test_a_spent_budget_keeps_what_was_accepted_and_the_same_command_resumes(
    parley: Callable[..., Any], respond: tuple[str, ...], author: Any
) -> None:
    stopped = parley(*respond, "--budget-calls", "2")

    assert stopped.status == 1
    assert stopped.complaints == ["parley: stopped: the budget of 2 calls is spent"]
    assert stopped.out.splitlines()[-1] == "2 scenarios, 1 with responses: bare-responses.toml"
    assert [bool(scenario.responses) for scenario in load_suite("bare-responses.toml")[0].scenario] == [True, False]

    result = parley(*respond)

    assert result.status == 0, "a run may overwrite its own file"
    assert result.out.splitlines()[-1] == "2 scenarios, 2 with responses: bare-responses.toml"
    assert len(author.asked) == 3


def test_a_derivation_stopped_before_anything_was_accepted(
    parley: Callable[..., Any], derive: tuple[str, ...], place: Path
) -> None:
    result = parley(*derive, "--budget-calls", "2")

    assert result.status == 1
    assert result.complaints[0] == "parley: stopped: the budget of 2 calls is spent"
    assert "nothing was accepted, so no file was written; parley show runs/malibu-derive-author-" in result.err
    assert not (place / "bases-derived.toml").exists()

    assert parley(*derive).status == 0


def test_a_killed_writer_resumes(
    parley: Callable[..., Any], start: Callable[..., Any], respond: tuple[str, ...], author: Any, server: Any
) -> None:
    server.delay = 0.3
    process = start(*respond)
    process.wait_for(lambda: len(author.asked) >= 3, seconds=180)
    process.kill()
    server.delay = 0.0

    assert parley(*respond).status == 0
    assert [scenario.responses for scenario in load_suite("bare-responses.toml")[0].scenario] == [
        FIRST.responses,
        SECOND.responses,
    ]


# Refused texts and wrong arguments


def test_derive_with_nothing_accepted(parley: Callable[..., Any], author: Any, place: Path) -> None:
    author.writes(GYM.text, {**idea(FIRST), "scenario": "You train."})

    result = parley(
        "run", "malibu-derive", "--bases", "fitness", "--suite", "bases.toml", "--count", "1", "--model", author.model,
        "--to", "bases-derived.toml",
    )  # fmt: skip

    assert result.status == 1
    assert len(result.complaints) == 1
    assert "nothing was accepted, so no file was written" in result.complaints[0]
    assert not (place / "bases-derived.toml").exists()


def test_respond_with_nothing_accepted(parley: Callable[..., Any], author: Any) -> None:
    author.writes(FIRST.text, SHORT)
    author.writes(SECOND.text, SHORT)

    result = parley("run", "malibu-respond", "--suite", "bare.toml", *COMMON, "--model", author.model, "--to", "n.toml")

    assert result.status == 1
    assert "nothing was accepted" in result.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("malibu-derive", "--bases", "plumbing"), "there is no base 'plumbing' in malibu-2 (known: astronomy, "),
        (("malibu-derive", "--bases", "fitness", "--suite", "none.toml"), "none.toml: No such file or directory"),
        (("malibu-derive", "--bases", "fitness", "--count", "0"), "count must be at least 1, got '0'"),
        (("malibu-derive", "--to", "new.yaml"), "new.yaml: the file's name must end in .toml"),
        (("malibu-derive", "--budget-calls", "-1"), "budget_calls must be at least 0"),
        (("malibu-derive", "--model", "nobody/x"), "unknown provider 'nobody'"),
        (("malibu-derive", "--model", "openai/gpt-4o-mini"), "openai/gpt-4o-mini needs a key: set OPENAI_API_KEY"),
        (("malibu-respond", "--suite", "none.toml"), "none.toml: No such file or directory"),
        (
            ("malibu-respond", "--suite", "bare.toml", "--scenarios", "gym"),
            "unknown scenario or base 'gym': not among the 2 of bare",
        ),
        (("malibu-respond", "--suite", "bare.toml", "--tries", "0"), "tries must be at least 1"),
        (("malibu-respond", "--suite", "bare.toml", "--to", "new"), "new: the file's name must end in .toml"),
    ],
)
def test_a_wrong_argument_gives_one_line(
    parley: Callable[..., Any], place: Path, arguments: tuple[str, ...], words: str
) -> None:
    result = parley("run", *arguments)

    assert (result.status, result.out) == (2, "")
    assert result.err.count("\n") == 1, result.err
    assert result.err.startswith("parley: ")
    assert words in result.err
    assert list(place.glob("**/*.sqlite")) == [], "nothing was started"


def test_nothing_is_lost_if_the_file_cannot_be_written(
    parley: Callable[..., Any], respond: tuple[str, ...], author: Any
) -> None:
    result = parley(*respond, "--to", "nowhere/whole.toml")

    assert result.status == 1
    assert result.complaints == ["parley: nowhere/whole.toml cannot be written: No such file or directory"]
    asked = len(author.asked)

    assert parley(*respond, "--to", "whole.toml").status == 0
    assert len(author.asked) == asked


def test_help_names_every_setting(parley: Callable[..., Any]) -> None:
    for verb, flags in (
        ("malibu-derive", ("--suite", "--count")),
        ("malibu-respond", ("--anew", "--per-base")),
    ):
        result = parley("run", verb, "--help-all")
        assert result.status == 0
        for flag in (*flags, "--model", "--tries", "--to", "--force", "--json", "--quiet", "--budget-cost", "--out"):
            assert flag in result.out, (verb, flag)


def test_respond_has_nothing_to_do_if_every_scenario_has_responses(
    parley: Callable[..., Any], respond: tuple[str, ...], author: Any
) -> None:
    parley(*respond, "--to", "whole.toml")
    asked = len(author.asked)

    result = parley("run", "malibu-respond", "--suite", "whole.toml", *COMMON, "--model", author.model, "--json")

    assert (result.status, result.out) == (2, "")
    hint = "nothing to write: every scenario of whole.toml has responses; --anew replaces them"
    assert result.complaints == [f"parley: {hint}"]
    assert len(author.asked) == asked
