"""Models by name, and a user's own provider."""

from __future__ import annotations

import pytest

from parley.agents import DEFAULT_MODEL, ConfigError, Models, model, register
from parley.agents.models import ClientOptions, split_name
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
        ("local/.", "is a folder without model.gguf, which `parley train` writes"),
        ("local/notes.gguf", "notes.gguf is not a GGUF file"),
    ],
)
def test_a_name_that_no_model_can_have_is_refused(place, name, said):
    (place / "notes.gguf").write_text("Dear diary")
    with pytest.raises(ConfigError) as caught:
        model(name)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_in_the_name_and_in_python_are_the_same():
    assert model("sim/judge?base=6&female=0.5").identity == model("sim/judge", base=6, female=0.5).identity


@pytest.mark.usefixtures("acme")
async def test_a_users_own_provider():
    register("acme", "acme_parley:AcmeClient", "our house model")
    client = model("acme/one?volume=3&price_in=1&price_out=1")
    assert (await client.create(ASK)).content == "Seven!!!"
    assert (client.name, client.provider, client.model) == ("acme/one", "acme", "one")
    assert PROVIDERS["acme"].about == "our house model"
    with pytest.raises(ConfigError, match=r"acme/one: unknown option 'loud' \(known: .*volume\)"):
        model("acme/one?loud=1")


@pytest.mark.usefixtures("acme")
def test_a_provider_whose_package_is_missing():
    register("gone", "parley_gone.client:GoneClient")
    with pytest.raises(ConfigError) as caught:
        model("gone/one")
    assert str(caught.value) == "gone/one needs the package 'parley_gone': pip install parley_gone"


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("target", ["acme_parley:Missing", "acme_parley", "acme_parley:LIMIT", "pathlib:Path"])
def test_a_target_that_is_not_a_client_class(target):
    register("acme", target)
    with pytest.raises(ConfigError, match="acme"):
        model("acme/one")


async def test_each_model_of_a_run_is_opened_once():
    models = Models()
    judge, other = models["sim/judge"], models["sim/judge?retries=2"]
    assert (models["sim/judge"] is judge, other.options.retries, list(models)) == (True, 2, [judge, other])
    await models.close()
    assert list(models) == []


def test_bytes_of_a_name_that_are_not_utf_8_are_written_out():
    """They come from a command line, and neither pydantic nor a run file could encode them."""
    assert split_name("sim/judge?\udc80noise=1") == ("sim/judge", {"\\udc80noise": "1"})
    assert model("sim/judge?\udc80noise=1").name


@pytest.mark.parametrize("name", ["sim/judge", "openai/m", "anthropic/m", "google/m", "vllm/m", "local/smollm2"])
def test_every_option_says_what_it_is(name):
    """The reference is made from it; a class may change the default of an option that all clients have."""
    described = {
        key for options in (ClientOptions, client_class(name).OptionsType)
        for key, field in options.model_fields.items() if field.description
    }  # fmt: skip
    assert set(client_class(name).OptionsType.model_fields) == described
