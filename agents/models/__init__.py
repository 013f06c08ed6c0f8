"""Model clients, by name: see `registry`. All of them are AutoGen `ChatCompletionClient`s."""

from parley.agents.models.base import Client
from parley.agents.models.cache import ReplyCache
from parley.agents.models.registry import Models, model
from parley.agents.models.reply import Reply
from parley.agents.models.request import DEFAULT_MODEL, ClientOptions, Request, split_name
from parley.agents.models.session import Budget, Session, session

__all__ = [
    "DEFAULT_MODEL",
    "Budget",
    "Client",
    "ClientOptions",
    "Models",
    "Reply",
    "ReplyCache",
    "Request",
    "Session",
    "model",
    "session",
    "split_name",
]
