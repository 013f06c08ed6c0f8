"""A key goes to its vendor, or to a server that the user named: never where somebody else's file says."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli_w

import parley as library
from parley.agents import ConfigError, load_personas
from parley.judging.stardtox.team import load_team
from tests.panels import PANEL, RUN_PANEL
from tests.servers import Server

KEY = "sk-Zq7xPlanted-0123456789abcdef"
KEYS = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "vllm": "VLLM_API_KEY",
    "server": "PARLEY_SERVER_KEY",
}
THEIRS = "theirs.example"


@pytest.fixture(autouse=True)
def asked_for(monkeypatch, place):
    """The hosts that were looked up; theirs is this machine, by another name. Every key is set."""
    resolve, hosts = socket.getaddrinfo, list[str]()

    def resolved(host, *rest, **options):
        hosts.append(str(host))
        return resolve("127.0.0.1" if host == THEIRS else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setenv("NO_PROXY", "*")
    for variable in KEYS.values():
        monkeypatch.setenv(variable, KEY)
    return hosts


def theirs(server: Server, provider: str = "openai") -> str:
    return f"{provider}/judge?base_url=http://{THEIRS}:{server.port}/v1&insecure=true&retries=0"


def persona(model: str) -> str:
    return f'[[persona]]\nname = "Ann"\nabout = "You are Ann."\nmodel = "{model}"\n'


def role(model: str) -> str:
    return (
        f'trait = "x"\n[[role]]\nname = "A"\nlabel = "an a"\nmodel = "{model}"\n[[role]]\nname = "B"\nlabel = "a b"\n'
    )


def judge(model: str) -> str:
    return f'[[evaluator]]\nname = "manners"\nabout = "x"\nmetrics = {{ manners = "y" }}\nmodel = "{model}"\n'


def scorer(model: str) -> str:
    return f'[[evaluator]]\nname = "toxicity"\nscorer = "{model}"\n'


MALIBU = ("run", "malibu", "--suite", "tiny", "--design", "paper", "--limit", "1", "--model", "sim/judge")
DETOX = ("detox", "You idiot.", "--model", "sim/m", "--team", "file.toml")
STORIES: dict[str, tuple[Callable[[str], str], tuple[str, ...], str]] = {
    "judges of MALIBU": (persona, (*MALIBU, "--judges", "file.toml"), "line 4: persona 'Ann' model"),
    "judges of a rubric": (
        persona,
        ("run", "rubric", "--data", "texts.txt", "--model", "sim/judge", "--judges", "file.toml"),
        "line 4: persona 'Ann' model",
    ),
    "a jury": (
        persona,
        (
            *("run", "bbq", "--data", "none", "--model", "sim/x"),
            *("--method", "fairthinking", "--settings", "jury=file.toml"),
        ),
        "line 4: persona 'Ann' model",
    ),
    "debaters": (
        role,
        ("run", "rldf", "--model", "sim/debate", "--bias", "file.toml", "--topics-from", "texts.txt"),
        "line 5: role 'A' model",
    ),
    "an evaluator": (judge, DETOX, "line 5: evaluator 'manners' model"),
    "a judge as a scorer": (lambda m: scorer(f"judge:{m}"), DETOX, "line 3: evaluator 'toxicity' scorer"),
    "a silent scorer": (lambda m: scorer(f"silent:{m}"), DETOX, "line 3: evaluator 'toxicity' scorer"),
}


@pytest.mark.parametrize("story", STORIES)
def test_a_file_does_not_choose_the_server(parley, server, asked_for, story):
    write, command, where = STORIES[story]
    Path("texts.txt").write_text("One text.\n")
    Path("file.toml").write_text(write(theirs(server)))
    result = parley(*command)
    assert (result.status, server.asked, THEIRS in asked_for) == (2, [], False), result
    assert result.complaints == [
        f"parley: file.toml: {where}: it sends your key and prompts to {THEIRS}, which only you may decide; leave "
        "base_url out of the file, and name the server yourself, on the command line or in OPENAI_BASE_URL"
    ]


@pytest.mark.parametrize("provider", KEYS)
def test_no_provider_is_an_exception(server, provider):
    Path("file.toml").write_text(persona(theirs(server, provider)))
    with pytest.raises(ConfigError, match=rf"to {THEIRS}, which only you may decide; .*_(BASE_)?URL$"):
        load_personas(Path("file.toml"))


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("openai/m?base%5Furl=https%3A%2F%2Ftheirs.example", f"to {THEIRS}"),
        ("openai/m?base_url=https://api.openai.com&base_url=https://theirs.example", f"to {THEIRS}"),
        ("openai/m?base_url=http://127.0.0.1:8000/v1", "to 127.0.0.1"),  # whoever listens there is not the vendor
        ("vllm/m?base_url=http://127.0.0.1@theirs.example", f"to {THEIRS}"),
        ("vllm/m?base_url=nonsense", "to another server"),
        ("acme/m?endpoint=https://theirs.example", f"to {THEIRS}"),  # an option of an installed provider
        (
            "vllm/m?insecure=true",
            "it lets your key go unencrypted, which only you may decide; leave insecure out of the file",
        ),
    ],
)
def test_there_is_no_way_around_it(model, why):
    Path("file.toml").write_text(persona(model))
    with pytest.raises(ConfigError, match=why):
        load_personas(Path("file.toml"))


@pytest.mark.parametrize(
    "model",
    [
        "openai/gpt-6-luna?effort=low&max_tokens=300",
        "sim/judge?female=+0.4",
        "vllm/Qwen/Qwen3-4B?base_url=http://127.0.0.1:8001/v1",  # servers of one's own, on this machine
        "server/m?base_url=http://localhost:8000/v1",
    ],
)
def test_what_a_file_may_say(model):
    Path("file.toml").write_text(persona(model))
    assert load_personas(Path("file.toml"))[0].model == model
    Path("team.toml").write_text(scorer(f"judge:{model}"))
    assert load_team("team.toml").models() == [model]


@pytest.mark.parametrize("way", ["command line", "config", "Python", "environment"])
def test_the_user_may_name_any_server(parley, server, monkeypatch, way):
    """Where an address in the environment also serves the personas of a file."""
    mine = {**PANEL, "suite": "tiny", "limit": 1, "phases": [1], "model": theirs(server)}
    run = (*RUN_PANEL, "--suite", "tiny", "--limit", "1", "--phases", "1", "--quiet")
    if way == "command line":
        assert parley(*run, "--model", theirs(server)).status == 0
    elif way == "config":
        Path("mine.toml").write_text(tomli_w.dumps(mine))
        assert parley("run", "malibu", "--config", "mine.toml", "--quiet").status == 0
    elif way == "Python":
        assert library.run("malibu", **mine).complete
    else:
        monkeypatch.setenv("PARLEY_SERVER_URL", f"http://127.0.0.1:{server.port}/v1")
        Path("file.toml").write_text(persona("server/judge?retries=0"))
        assert parley(*run, "--judges", "file.toml", "--model", "sim/judge").status == 0
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}


def test_a_suite_and_a_rubric_name_no_model_at_all(parley, server):
    Path("rubric.toml").write_text(f'model = "{theirs(server)}"\n[[metric]]\nname = "A"\nquestions = ["b?"]\n')
    result = parley(*MALIBU, "--rubric", "rubric.toml")
    assert (result.status, server.asked) == (2, [])
    assert "unknown key model" in result.err


READ = {
    "report": (),
    "show": (),
    "view": ("--export", "page.html"),
    "export": ("--format", "inspect", "--to", "log.json"),
}


def test_a_run_file_of_somebody_else_reaches_no_server(parley, server, asked_for):
    """To continue it, the user has to type its models."""
    run = (*RUN_PANEL, "--suite", "tiny", "--phases", "1", "--rounds", "1", "--quiet", "--no-cache", "--limit", "1")
    assert (
        parley(*run, "--model", theirs(server), "--budget-calls", "7", "--concurrency", "1", "--out", "a.sqlite").status
        == 1
    )
    assert server.asked
    server.asked.clear()
    asked_for.clear()
    again = parley(*run, "--model", "openai/judge", "--out", "a.sqlite")
    assert again.status == 1
    assert "a.sqlite contains a different run (model: " in again.err
    for command, flags in READ.items():
        assert parley(command, "a.sqlite", *flags).status == 0
    assert (server.asked, asked_for) == ([], [])
