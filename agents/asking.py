"""A single question to a single persona.

turn = await ask(Persona("Ada", "You are Ada, an auditor."), "Should buses be free?", model="local/smollm2")
turn.text, turn.calls
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient
from pydantic import BaseModel

from parley.agents.conversation import choose_client
from parley.agents.models.registry import Models
from parley.agents.persona_agent import PersonaAgent
from parley.agents.personas import Persona
from parley.agents.seats import Seat, narrate
from parley.agents.structured import Readout
from parley.agents.transcripts import Turn


async def ask(
    persona: Persona,
    prompt: str,
    reply_type: type[BaseModel] | None = None,
    *,
    model: str | ChatCompletionClient | None = None,
    models: Models | None = None,
    readout: Readout = "sampled",
    options: Mapping[str, Any] | None = None,
    cancellation_token: CancellationToken | None = None,
) -> Turn:
    """Ask one persona one question; the turn is recorded like the only turn of a debate of one.

    Args:
        persona: Who answers.
        prompt: The question.
        reply_type: A pydantic type that the reply is parsed as, into `turn.verdict`; by default it is plain text.
        model: The model, as `provider/model` or any AutoGen client. A persona's own model comes first; without
            either it is the embedded default.
        models: The clients to use, in a study those of the run. By default a client is opened for this question and
            closed after it.
        readout: How scores are read from a typed reply: `sampled`, as written, or `expected`, as the mean over the
            scale's tokens (needs log-probabilities).
        options: Passed with the call, such as `{"max_tokens": 200}`; by default the client's own apply.
        cancellation_token: Cancels the call.
    """
    clients = Models() if models is None else models
    try:
        client = choose_client(persona.model, model, clients)
        agent = PersonaAgent(persona, client, reply_type=reply_type, readout=readout, options=options)
        seat = Seat(agent, "debater", inbox=[narrate(prompt)])
        spoken = await seat.speak(round=1, token=cancellation_token or CancellationToken())
        return spoken.turn
    finally:
        if models is None:
            await clients.close()
