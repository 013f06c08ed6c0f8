"""Models by name, a user's own provider, and the price list."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from typing import Any
from urllib.parse import urlsplit

import pytest

from parley.agents import DEFAULT_MODEL, ConfigError, Models, model, record_calls, register
from parley.agents.models import ClientOptions, split_name
from parley.agents.models.prices import LongPrompt, Price, price_list, price_of
from parley.agents.models.registry import client_class
from parley.agents.providers import PROVIDERS
from tests.agents.common import ASK

ACME = """
from typing import ClassVar

from autogen_core.models import RequestUsage
from pydantic import Field

from parley.agents.models import Client, ClientOptions, Reply, Request

LIMIT = 5


class AcmeOptions(ClientOptions):
    volume: int = Field(1, ge=1)


class AcmeClient(Client):
    OptionsType: ClassVar[type[ClientOptions]] = AcmeOptions

    async def send(self, request: Request) -> Reply:
        text = "Seven" + "!" * self.options.volume
        return Reply(finish_reason="stop", content=text, usage=RequestUsage(2, 1), cached=False)


def autogens(name):
    from autogen_ext.models.replay import ReplayChatCompletionClient

    return ReplayChatCompletionClient([name])
"""


@pytest.fixture
def acme(tmp_path, monkeypatch):
    """A user's package with a client; the providers are restored afterwards."""
    (tmp_path / "acme_parley.py").write_text(ACME)
    monkeypatch.syspath_prepend(tmp_path)
    before = dict(PROVIDERS)
    yield
    PROVIDERS.clear()
    PROVIDERS.update(before)


def test_a_name_and_its_options():
    assert split_name("sim/judge") == ("sim/judge", {})
    assert split_name("sim/judge?female=+0.4&noise=0") == ("sim/judge", {"female": "+0.4", "noise": "0"})
    assert split_name("ollama/llama3.2:1b?temperature=0") == ("ollama/llama3.2:1b", {"temperature": "0"})
    assert split_name("local/~/models/a.gguf") == ("local/~/models/a.gguf", {})
    url = "http://host:8000/v1"
    assert split_name(f"server/org/name?base_url={url}") == ("server/org/name", {"base_url": url})
    assert split_name("server/m?base_url=http://host/%3Fa%3D1")[1] == {"base_url": "http://host/?a=1"}
    # Bytes that are not UTF-8 come from a command line, and neither pydantic nor a run file could encode them.
    assert split_name("sim/judge?\udc80noise=1") == ("sim/judge", {"\\udc80noise": "1"})
    assert model("sim/judge?\udc80noise=1").name == "sim/judge"


NOT_A_NAME = "'{0}' is not a model name; write provider/model, for example " + DEFAULT_MODEL


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *((name, NOT_A_NAME.format(name)) for name in ("judge", "sim/", "/judge", "", "?a=1")),
        ("acme/one", "unknown provider 'acme' in 'acme/one' (known: local, hf, sim, openai, "),
        ("sim/judge?noise", "'sim/judge?noise': option 'noise' has no value; write noise=VALUE"),
        ("server/m", "server/m needs an address: write server/m?base_url="),
        ("ollama/m?temprature=1", "ollama/m: unknown option 'temprature'"),
        ("ollama/m?temperature=warm", "ollama/m: option 'temperature': "),
        ("ollama/m?retries=-1", "ollama/m: option 'retries': "),
        ("local/gpt5", "'local/gpt5' is neither in the catalogue (local/smollm2, "),
        ("local/qwen2.5-coder-1.5b", "is not downloaded yet: run parley models fetch qwen2.5-coder-1.5b (1117 MB)"),
        ("local/none.gguf", "there is no file none.gguf"),
        ("local/.", "is a folder, and llama.cpp reads .gguf files: a trained model is hf/."),
        ("local/notes.gguf", "notes.gguf is not a GGUF file"),
    ],
)
def test_a_name_that_no_model_can_have_is_refused(place, name, said):
    (place / "notes.gguf").write_text("Dear diary")
    with pytest.raises(ConfigError) as caught:
        model(name)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("acme")
async def test_a_users_own_provider():
    register("acme", "acme_parley:AcmeClient", "our house model")
    client = model("acme/one?volume=3&price_in=1&price_out=1")
    assert (await client.create(ASK)).content == "Seven!!!"
    assert (client.name, client.provider, client.model) == ("acme/one", "acme", "one")
    assert PROVIDERS["acme"].about == "our house model"
    assert (client.remaining_tokens(ASK), client.count_tokens(ASK)) == (128_000 - 4 - 3, 4 + 3)
    assert client.capabilities == client.model_info == {
        "vision": False, "function_calling": False, "json_output": True, "family": "unknown",
        "structured_output": False, "multiple_system_messages": False,
    }  # fmt: skip
    assert client.model_list() is None
    with pytest.raises(ConfigError, match=r"acme/one: unknown option 'loud' \(known: .*volume\)"):
        model("acme/one?loud=1")
    register("mine", "acme_parley:autogens", logprobs=True)
    made = model("mine/two/three?price_in=2&price_out=3")
    with record_calls() as calls:
        assert (await made.create(ASK)).content == "two/three"
    assert [(call.model, call.cost) for call in calls] == [("mine/two/three", pytest.approx((2 * 2 + 3) / 1e6))]
    assert (PROVIDERS["mine"].about, PROVIDERS["mine"].logprobs) == ("registered by the user", True)


FLAGS = {
    "local": "in_process logprobs continues embedded", "hf": "in_process logprobs continues embedded",
    "sim": "in_process simulated", "openai": "logprobs", "deepseek": "logprobs", "openrouter": "logprobs",
    "google": "", "anthropic": "", "server": "logprobs", "vllm": "logprobs continues",
    "ollama": "logprobs", "llamacpp": "logprobs continues",
}  # fmt: skip


def test_what_providers_can_do():
    names = ("in_process", "simulated", "logprobs", "continues", "embedded")
    shown = {key: " ".join(n for n in names if getattr(provider, n)) for key, provider in PROVIDERS.items()}
    assert shown == FLAGS


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("parley_gone.client:GoneClient", "^acme/one needs the package 'parley_gone': pip install parley_gone$"),
        *((target, "acme") for target in ("acme_parley:Missing", "acme_parley", "acme_parley:LIMIT", "pathlib:Path")),
    ],
)
def test_a_target_that_is_not_a_client_class(target, said):
    register("acme", target)
    with pytest.raises(ConfigError, match=said):
        model("acme/one")


async def test_each_model_of_a_run_is_opened_once():
    models = Models()
    judge, other = models["sim/judge"], models["sim/judge?retries=2"]
    assert (models["sim/judge"] is judge, other.options.retries, list(models)) == (True, 2, [judge, other])
    assert (models.name_of(other), models.name_of(None)) == ("sim/judge?retries=2", None)
    shared = [models.share("scorer", lambda: model("sim/scorer")) for _ in range(2)]
    assert (shared[0] is shared[1], list(models)) == (True, [judge, other])
    await models.close()
    assert (list(models), models.share("scorer", Models) is shared[0]) == ([], False)


@pytest.mark.parametrize("name", ["sim/judge", "openai/m", "anthropic/m", "google/m", "vllm/m", "local/smollm2"])
def test_every_option_says_what_it_is(name):
    """The reference is made from it; a class may change the default of an option that all clients have."""
    described = {
        key for options in (ClientOptions, client_class(name).OptionsType)
        for key, field in options.model_fields.items() if field.description
    }  # fmt: skip
    assert set(client_class(name).OptionsType.model_fields) == described


PROGRAM = """
import sys
import parley.agents
from parley.agents import ConfigError, Persona, Transcript, record_calls
assert dir(parley.agents) == sorted(parley.agents.__all__)
from parley.runs import RunFile
assert "autogen_core" not in sys.modules
from parley.agents import Debate
assert "autogen_core" in sys.modules
"""


def test_neither_the_package_nor_a_run_file_loads_autogen_until_a_name_needs_it(place):
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Prices

DAY = date(2026, 11, 16)


def test_every_price_has_a_source_and_a_date_and_plausible_rates():
    listed = price_list(DAY)
    assert {name.partition("/")[0] for name in listed} == {"openai", "anthropic", "google", "deepseek"}
    assert all(
        listed[PROVIDERS[prefix].example].ends is None for prefix in ("openai", "anthropic", "google", "deepseek")
    )
    assert "openai/gpt-4o-mini" in {name for name, entry in listed.items() if entry.ends}
    for name, entry in listed.items():
        price = entry.price
        assert urlsplit(entry.source).scheme == "https", name
        assert (entry.dated or entry.looked_up) <= entry.looked_up <= DAY, name
        assert (price.cached or 0.0) < price.prompt < price.completion, name  # type: ignore[operator]
        assert price.written_factor in (1.0, 1.25), name
        if entry.ends:
            assert entry.ends > DAY, f"{name} is gone: remove it"
            assert listed[entry.use or ""].ends is None


def test_a_price_changes_on_its_day():
    before, after = (price_list(date(2026, *day))["google/gemini-4-argon"] for day in ((11, 30), (12, 1)))
    assert (before.price.prompt, before.price.completion, before.price.cached) == (2.0, 10.0, 0.10)
    assert (after.price.prompt, after.price.completion, after.price.cached) == (4.0, 20.0, 0.20)
    assert (before.until, after.until) == (date(2026, 11, 30), None)


@pytest.mark.parametrize(
    ("price", "tokens", "cost"),
    [
        # 1,000 tokens of the prompt are read from the cache at 0.20, 2,000 written at 2.50, 3,000 plain at 2.00
        (
            price_of("anthropic/claude-sonnet-5-5"),
            (6000, 100, 1000, 2000),
            1000 * 0.20 + 2000 * 2.50 + 3000 * 2.00 + 100 * 10.0,
        ),
        (price_of("anthropic/claude-haiku-5-5"), (100_000, 1000), 10_500),
        (price_of("anthropic/claude-haiku-5-5"), (100_001, 1000), 5 * 10_500),  # a long prompt costs five times as much
        (Price(1.0, 2.0, cached=0.1, long=LongPrompt(10, 2.0, 1.5)), (100, 10, 50), 50 * 2.0 + 50 * 0.2 + 10 * 3.0),
        (Price(0.15, 0.6), (1000, 100, 900), 1000 * 0.15 + 100 * 0.6),  # an unknown cached price is the full one
    ],
)
def test_cached_written_and_long_prompts_have_their_rates(price, tokens, cost):
    assert price.cost_of_call(*tokens) == pytest.approx(cost / 1e6, rel=1e-4)


def test_unknown_stays_unknown():
    for price in (price_of("openai/no-such-model"), price_of("openai/no-such-model", price_in=1.0)):
        assert not price.known
        assert price.cost(1, 1) is price.cost_of_call(1, 1) is None
    assert price_of("sim/judge") == Price(0.0, 0.0)


def test_a_user_price_replaces_the_listed_one(monkeypatch):
    options: dict[str, Any] = {"price_in": 1.0, "price_out": 4.0}
    price = client_class("openai/gpt-6-luna").price_for("openai/gpt-6-luna", options)
    assert (price.prompt, price.completion, price.cached, price.long) == (1.0, 4.0, None, None)
