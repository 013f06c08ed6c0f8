"""An agent that continues a text away from a bias, on a model whose next-token probabilities are at hand.

    writer = ContrastAgent("Writer", model("local/smollm2"), against="The following text is rude:\n\n{text}")

It is given no chat: the text is continued as it stands. See `parley.agents.models.self_debias` for the arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_core import CancellationToken
from autogen_core.models import SystemMessage, UserMessage

from parley.agents.errors import ConfigError
from parley.agents.models.base import Client
from parley.agents.models.registry import client_class, split_name
from parley.agents.models.wire import NARRATOR


def require_next_token_probabilities(name: str, what: str) -> None:
    """One line for a model that cannot be decoded against a bias; needs no key and loads nothing."""
    if not client_class(split_name(name)[0]).next_tokens:
        raise ConfigError(
            f"{what} needs the log-probabilities of every next token, and {name.partition('?')[0]} does not give them "
            "(a local/ model does)"
        )


class SelfDebiasAgent(BaseChatAgent):
    """Continues the last text it was sent. `against` holds {text}; `decay` is λ, `keep` how many tokens are weighed."""

    def __init__(
        self,
        name: str,
        client: Client,
        *,
        against: str,
        decay: float = 50.0,
        keep: int = 1000,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name, "Continues a text, away from a bias.")
        require_next_token_probabilities(client.name, "decoding against a bias")
        self._client, self._against = client, against
        self._options = {**(options or {}), "contrast_decay": decay, "contrast_keep": keep}

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
        said = TextMessage(content=str(reply.content), source=self.name, models_usage=reply.usage)
        return Response(chat_message=said)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """It remembers nothing."""
