"""Model clients, by name: see `registry`. All of them are AutoGen `ChatCompletionClient`s."""

from parley.agents.models.base import Client
from parley.agents.models.budget import Budget
from parley.agents.models.cache import ReplyCache
from parley.agents.models.options import ClientOptions
from parley.agents.models.registry import DEFAULT_MODEL, PROVIDERS, Models, Provider, model, register, split_name
from parley.agents.models.reply import Reply
from parley.agents.models.request import Request
from parley.agents.models.session import Session, session

__all__ = [
    "DEFAULT_MODEL",
    "PROVIDERS",
    "Budget",
    "Client",
    "ClientOptions",
    "Models",
    "Provider",
    "Reply",
    "ReplyCache",
    "Request",
    "Session",
    "model",
    "register",
    "session",
    "split_name",
]
