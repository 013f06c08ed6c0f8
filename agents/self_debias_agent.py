"""Self-Debias: an agent that continues a text away from a bias. It needs a model with next-token probabilities.

    writer = SelfDebiasAgent("Writer", model("local/smollm2"), against="The following text is rude:\n\n{text}")

No chat template is applied: the model continues the text itself. `parley.agents.models.local` has the arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_core import CancellationToken
from autogen_core.models import SystemMessage, UserMessage

from parley.agents.models.base import Client
from parley.agents.models.registry import client_class
from parley.agents.models.request import split_name
from parley.agents.models.wire import NARRATOR
from parley.base.errors import ConfigError


def require_next_token_probabilities(name: str, what: str) -> None:
    """ConfigError if the named model has no next-token probabilities; needs no key and loads nothing.

    Args:
        name: The model, as `provider/model`.
        what: What needs them, for the message ("decoding against a bias").
    """
    if not client_class(split_name(name)[0]).next_tokens:
        raise ConfigError(
            f"{what} needs the log-probabilities of every next token, but {name.partition('?')[0]} does not give them "
            "(a local/ model does)"
        )


KEPT = 1000
"""Most probable tokens that are considered at each step."""


class SelfDebiasAgent(BaseChatAgent):
    """Continues the last message it was sent.

    Args:
        name: The agent's name.
        client: A model with next-token probabilities (a `local/` one).
        against: The prompt that calls for the bias, with `{text}`; tokens that it makes more probable are suppressed.
        decay: λ, the strength of the suppression: 0 is plain decoding, 50 the default of the method's authors.
        options: Passed with every call, such as `{"max_tokens": 40}`.
    """

    def __init__(
        self,
        name: str,
        client: Client,
        *,
        against: str,
        decay: float = 50.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name, "Continues a text, away from a bias.")
        if not client.next_tokens:
            require_next_token_probabilities(client.name, "decoding against a bias")
        self._client, self._against = client, against
        self._options = {**(options or {}), "contrast_decay": decay, "contrast_keep": KEPT}

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        text = messages[-1].to_model_text()
        reply = await self._client.create(
            [SystemMessage(content=self._against.format(text=text)), UserMessage(content=text, source=NARRATOR)],
            extra_create_args=self._options,
            cancellation_token=cancellation_token,
        )
        message = TextMessage(content=str(reply.content), source=self.name, models_usage=reply.usage)
        return Response(chat_message=message)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Nothing to reset: the agent has no memory."""
