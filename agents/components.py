"""Conversations and personas as AutoGen components: what `dump_component` saves and `load_component` builds again.

Functions and types are saved as `module:name`. One that cannot be imported, such as a lambda, cannot be saved, and
saving says so. Keys are never saved: our clients read them from the environment when they are loaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from autogen_agentchat.base import ChatAgent, Team
from autogen_core import ComponentLoader, ComponentModel
from autogen_core.models import ChatCompletionClient
from pydantic import BaseModel, SecretStr

from parley.agents.ballots import SilentBallot
from parley.agents.speaking_order import NextSpeaker, Order, by_model, shuffled
from parley.base.errors import ConfigError
from parley.base.plugins import load_object

Saved = str | ComponentModel
"""A model's name or a client; `module:name` or a component."""


class PersonaAgentConfig(BaseModel, extra="forbid"):
    """What is saved of a `PersonaAgent`."""

    name: str
    about: str
    model: str | None = None
    model_client: ComponentModel
    reply_type: str | None = None
    readout: Literal["sampled", "expected"] = "sampled"
    options: dict[str, Any] = {}
    placement: Literal["system", "last"] = "system"
    model_client_stream: bool = False
    model_context: ComponentModel | None = None


class OrderConfig(BaseModel):
    """What is saved of a speaking order with settings."""

    kind: Literal["shuffled", "by_model"]
    seed: int = 0
    model: Saved | None = None
    selector_prompt: str | None = None
    allow_repeated_speaker: bool = False
    max_selector_attempts: int = 3


class ConversationConfig(BaseModel):
    """What is saved of any conversation."""

    name: str
    model: Saved | None = None
    termination_condition: ComponentModel | None = None
    readout: Literal["sampled", "expected"] = "sampled"
    options: dict[str, Any] = {}
    model_client_stream: bool = False


class DebateConfig(ConversationConfig):
    """What is saved of a `Debate`."""

    participants: list[ComponentModel]
    rounds: int = 2
    blind_rounds: int = 0
    order: str | OrderConfig
    sees: str
    referee: ComponentModel | None = None
    chair: ComponentModel | None = None
    instructions: str | None = None
    reply_type: str | None = None
    placement: Literal["system", "last"] = "system"
    fence: bool | Literal["referee"] = False
    ballots: list[SilentBallot] = []
    heard: dict[str, str] = {}
    max_turns: int | None = None


class EvaluatorConfig(BaseModel):
    """What is saved of an `Evaluator`."""

    agent: ComponentModel
    reply_type: str
    prompt: str
    options: dict[str, Any] | None = None


class CritiqueConfig(ConversationConfig):
    """What is saved of a `Critique`."""

    generator: ComponentModel
    evaluators: dict[str, str | EvaluatorConfig]
    criteria: dict[str, str]
    max_iterations: int = 2
    measure_only: list[str] = []
    draft: str | None = None
    draft_type: str | None = None
    show_draft: str
    evaluator_task: str | None = None
    revise_prompt: str


def reference(thing: Callable[..., Any] | None, what: str) -> str | None:
    """A function or type as `module:name`; ConfigError if it cannot be imported from there."""
    if thing is None:
        return None
    name = f"{getattr(thing, '__module__', '')}:{getattr(thing, '__qualname__', '')}"
    try:
        found = load_object(name)
    except (ConfigError, ValueError):
        found = None
    if found is not thing:
        raise ConfigError(f"{what} cannot be saved: {name} is not a function or type at the top level of a module")
    return name


def resolve(name: str | None, what: str) -> Any:
    """The function or type that `module:name` refers to."""
    if name is None:
        return None
    found = load_object(name)
    if found is None:
        raise ConfigError(f"{what}: there is no {name}")
    return found


def save(thing: Any, what: str) -> ComponentModel:
    """A participant, client, condition or context as a component; ConfigError if it cannot be one.

    Secrets are left out: a client that is loaded takes its key from the environment.
    """
    try:
        saved: ComponentModel = thing.dump_component()
    except (NotImplementedError, AttributeError, TypeError, OSError) as error:  # the last: a function without source
        raise ConfigError(f"{what} cannot be saved: {type(thing).__name__}: {error}") from None
    return saved.model_copy(update={"config": _without_secrets(saved.config)})


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_secrets(inner) for key, inner in value.items() if not isinstance(inner, SecretStr)}
    return [_without_secrets(inner) for inner in value] if isinstance(value, list) else value


def load(model: ComponentModel) -> Any:
    """The component that was saved."""
    return ComponentLoader.load_component(model.model_copy(update={"config": _with_keys(model.config)}), object)


def _with_keys(value: Any) -> Any:
    """A saved config that gives AutoGen's clients of keyless servers a key, which OpenAI's package requires.

    A server is taken for keyless if its address is plain http and the environment has no key.
    """
    if isinstance(value, Mapping):
        filled = {key: _with_keys(inner) for key, inner in value.items()}
        plain = "model" in value and str(value.get("base_url")).startswith("http://")
        keyless = plain and not value.get("api_key")
        return filled | {"api_key": "none"} if keyless and "OPENAI_API_KEY" not in os.environ else filled
    return [_with_keys(inner) for inner in value] if isinstance(value, list) else value


def load_participant(model: ComponentModel) -> ChatAgent | Team:
    """The agent or team that was saved."""
    loaded = load(model)
    if not isinstance(loaded, ChatAgent | Team):
        raise ConfigError(f"{model.provider} is neither an agent nor a team")
    return loaded


def save_model(model: str | ChatCompletionClient | None) -> Saved | None:
    """A model's name as it is; a client as a component."""
    return model if model is None or isinstance(model, str) else save(model, "the model")


def load_model(saved: Saved | None) -> Any:
    """A model's name, or the client that was saved."""
    return load(saved) if isinstance(saved, ComponentModel) else saved


def save_order(order: Order | NextSpeaker) -> str | OrderConfig:
    """A speaking order; a function as `module:name`."""
    if isinstance(order, shuffled):
        return OrderConfig(kind="shuffled", seed=order.seed)
    if isinstance(order, by_model):
        return OrderConfig(
            kind="by_model",
            model=save_model(order.model),
            selector_prompt=order.selector_prompt,
            allow_repeated_speaker=order.allow_repeated_speaker,
            max_selector_attempts=order.max_selector_attempts,
        )
    if isinstance(order, NextSpeaker):
        raise ConfigError(f"the speaking order cannot be saved: {type(order).__name__} is not one of Parley's")
    return str(reference(order, "the speaking order"))


def load_order(saved: str | OrderConfig) -> Order | NextSpeaker:
    """The speaking order that was saved."""
    if isinstance(saved, str):
        order: Order = resolve(saved, "the speaking order")
        return order
    if saved.kind == "shuffled":
        return shuffled(saved.seed)
    settings = saved.model_dump(include={"selector_prompt", "allow_repeated_speaker", "max_selector_attempts"})
    return by_model(load_model(saved.model), **settings)


def share_clients(agents: Sequence[Any]) -> list[ChatCompletionClient]:
    """Let personas that were saved with the same client use one again, so that its limits are shared; returns all."""
    shared: dict[str, ChatCompletionClient] = {}
    for agent in agents:
        client = getattr(agent, "client", None)
        if isinstance(client, ChatCompletionClient):
            agent.client = shared.setdefault(client.dump_component().model_dump_json(), client)
    return list(shared.values())
