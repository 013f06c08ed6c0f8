"""A key goes to its vendor, or to a server that the user named; no file of somebody else's decides, and none is run."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import tomli_w

import parley as library
from parley.agents import ConfigError, load_personas
from parley.judging.stardtox.team import load_team
from tests.agents.test_catalogue import WEIGHTS, add_tiny, publish
from tests.panels import PANEL, RUN_PANEL

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
    resolve, hosts = socket.getaddrinfo, []

    def resolved(host, *rest, **options):
        hosts.append(str(host))
        return resolve("127.0.0.1" if host == THEIRS else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setenv("NO_PROXY", "*")
    for variable in KEYS.values():
        monkeypatch.setenv(variable, KEY)
    return hosts


def theirs(server, provider="openai"):
    return f"{provider}/judge?base_url=http://{THEIRS}:{server.port}/v1&insecure=true&retries=0"


PERSONA = '[[persona]]\nname = "Ann"\nabout = "You are Ann."\nmodel = "MODEL"\n'
ROLE = 'trait = "x"\n[[role]]\nname = "A"\nlabel = "an a"\nmodel = "MODEL"\n[[role]]\nname = "B"\nlabel = "a b"\n'
JUDGE = '[[evaluator]]\nname = "manners"\nabout = "x"\nmetrics = { manners = "y" }\nmodel = "MODEL"\n'
SCORER = '[[evaluator]]\nname = "toxicity"\nscorer = "judge:MODEL"\n'
MALIBU = "run malibu --suite tiny --design paper --limit 1 --model sim/judge"
JURY = "run bbq --data none --model sim/x --method fairthinking --settings jury=file.toml"
RLDF = "run rldf --model sim/debate --topics-from texts.txt"
DETOX = "detox Fool. --model sim/m --team file.toml"
STORIES = {
    "judges of MALIBU": (PERSONA, f"{MALIBU} --judges file.toml", "line 4: persona 'Ann' model"),
    "a jury": (PERSONA, JURY, "line 4: persona 'Ann' model"),
    "debaters": (ROLE, f"{RLDF} --bias file.toml", "line 5: role 'A' model"),
    "an evaluator": (JUDGE, DETOX, "line 5: evaluator 'manners' model"),
    "a judge as a scorer": (SCORER, DETOX, "line 3: evaluator 'toxicity' scorer"),
    "a silent scorer": (SCORER.replace("judge:", "silent:"), DETOX, "line 3: evaluator 'toxicity' scorer"),
}


def test_a_file_does_not_choose_the_server(parley, server, asked_for):
    Path("texts.txt").write_text("One text.\n")
    for text, command, where in STORIES.values():
        Path("file.toml").write_text(text.replace("MODEL", theirs(server)))
        result = parley(*command.split())
        assert (result.status, server.asked, THEIRS in asked_for) == (2, [], False), result
        assert result.complaints == [
            f"parley: file.toml: {where}: it sends your key and prompts to {THEIRS}, which a file may not choose; "
            "leave base_url out of the file, and name the server yourself, on the command line or in OPENAI_BASE_URL"
        ]


def test_no_provider_is_an_exception_and_there_is_no_way_around_it(server):
    refused = {
        **{theirs(server, name): rf"to {THEIRS}, which a file may not choose; .*_(BASE_)?URL$" for name in KEYS},
        "openai/m?base%5Furl=https%3A%2F%2Ftheirs.example": f"to {THEIRS}",
        "openai/m?base_url=https://api.openai.com&base_url=https://theirs.example": f"to {THEIRS}",
        "openai/m?base_url=http://127.0.0.1:8000/v1": "to 127.0.0.1",  # whoever listens there is not the vendor
        "vllm/m?base_url=http://127.0.0.1@theirs.example": f"to {THEIRS}",
        "vllm/m?base_url=nonsense": "to another server",
        "acme/m?endpoint=https://theirs.example": f"to {THEIRS}",  # an option of an installed provider
        "vllm/m?insecure=true": "it sends your key unencrypted, which a file may not choose; leave insecure out",
    }
    for model, why in refused.items():
        Path("file.toml").write_text(PERSONA.replace("MODEL", model))
        with pytest.raises(ConfigError, match=why):
            load_personas(Path("file.toml"))


def test_what_a_file_may_say():
    for model in (
        "openai/gpt-6-luna?effort=low&max_tokens=300",
        "sim/judge?female=+0.4",
        "vllm/Qwen/Qwen3-4B?base_url=http://127.0.0.1:8001/v1",  # servers of one's own, on this machine
        "server/m?base_url=http://localhost:8000/v1",
    ):
        Path("file.toml").write_text(PERSONA.replace("MODEL", model))
        assert load_personas(Path("file.toml"))[0].model == model
        Path("team.toml").write_text(SCORER.replace("MODEL", model))
        assert load_team("team.toml").models() == [model]


def test_the_user_may_name_any_server(parley, server, monkeypatch):
    """Where an address in the environment also serves the personas of a file."""
    mine = {**PANEL, "suite": "tiny", "limit": 1, "phases": [1], "model": theirs(server)}
    run = (*RUN_PANEL, "--suite", "tiny", "--limit", "1", "--phases", "1", "--quiet")
    assert parley(*run, "--model", theirs(server)).status == 0
    Path("mine.toml").write_text(tomli_w.dumps(mine))
    assert parley("run", "malibu", "--config", "mine.toml", "--quiet", "--seed", "1").status == 0
    assert library.run("malibu", **mine, seed=2).complete
    monkeypatch.setenv("PARLEY_SERVER_URL", f"http://127.0.0.1:{server.port}/v1")
    Path("file.toml").write_text(PERSONA.replace("MODEL", "server/judge?retries=0"))
    assert parley(*run, "--judges", "file.toml", "--model", "sim/judge").status == 0
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}


def test_a_run_file_of_somebody_else_reaches_no_server(parley, server, asked_for):
    """To continue it, the user has to type its models."""
    run = (*RUN_PANEL, "--suite", "tiny", "--phases", "1", "--rounds", "1", "--quiet", "--no-cache", "--limit", "1")
    budget = ("--budget-calls", "7", "--concurrency", "1", "--out", "a.sqlite")
    assert parley(*run, "--model", theirs(server), *budget).status == 1
    assert server.asked
    server.asked.clear()
    asked_for.clear()
    again = parley(*run, "--model", "openai/judge", "--out", "a.sqlite")
    assert again.status == 1
    assert "a.sqlite contains a different run (model: " in again.err
    for words in ("report --no-files --draws 20", "show", "view --export page.html", "export --format transcripts"):
        command, *flags = words.split()
        assert parley(command, "a.sqlite", *flags).status == 0
    assert (server.asked, asked_for) == ([], [])


TRAP = """
import os
with open({marker!r}, "a") as file:
    file.write({name!r} + "\\n")
"""
MODULES = "random sitecustomize usercustomize json socket pydantic pip parley asyncio"


@pytest.fixture
def hostile(place):
    """The current folder has a file for every name; each notes that it was run."""
    marker = place / "executed"
    for name in MODULES.split():
        (place / f"{name}.py").write_text(TRAP.format(marker=str(marker), name=name))
    return lambda: sorted(set(marker.read_text().split())) if marker.exists() else []


def test_fetching_weights_runs_nothing_of_the_current_folder(place, hostile, monkeypatch):
    from parley.agents.models.catalogue import fetch

    (place / "index").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place / "index"))
    publish(place / "index", "tinyweights", "tiny.gguf", WEIGHTS)
    add_tiny(monkeypatch, "tinyweights")
    assert fetch("tiny").read_bytes() == WEIGHTS
    assert hostile() == []
