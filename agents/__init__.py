"""Parley's agents: model clients, personas, and the two conversations, debate and critique.

This is the only room that imports AutoGen.
"""

from parley.agents.calls import Call, Piece, hear_calls, seed_from
from parley.agents.conversation import together
from parley.agents.critique import Critique
from parley.agents.debate import Cue, Debate, everyone, round_robin, shuffled, simultaneous
from parley.agents.errors import (
    AuthError,
    BadRequest,
    BudgetSpent,
    ConfigError,
    ModelError,
    ParleyError,
    RateLimited,
    SearchError,
    ServerFault,
)
from parley.agents.evaluation import Assessment, Evaluator, Unscored
from parley.agents.models import DEFAULT_MODEL, Budget, Client, Models, ReplyCache, Session, model, register, session
from parley.agents.models.session import watch_calls
from parley.agents.personas import Persona, PersonaAgent, Placement, load_personas
from parley.agents.self_debias import ContrastAgent, refuse_without_next_tokens
from parley.agents.structured import Readout, Structured, TextReply, ask, looks_refused, parse, remark, scale
from parley.agents.transcripts import ParseStatus, Role, Transcript, Turn, Usage

__all__ = [
    "DEFAULT_MODEL",
    "Assessment",
    "AuthError",
    "BadRequest",
    "Budget",
    "BudgetSpent",
    "Call",
    "Client",
    "ConfigError",
    "ContrastAgent",
    "Critique",
    "Cue",
    "Debate",
    "Evaluator",
    "ModelError",
    "Models",
    "ParleyError",
    "ParseStatus",
    "Persona",
    "PersonaAgent",
    "Piece",
    "Placement",
    "RateLimited",
    "Readout",
    "ReplyCache",
    "Role",
    "SearchError",
    "ServerFault",
    "Session",
    "Structured",
    "TextReply",
    "Transcript",
    "Turn",
    "Unscored",
    "Usage",
    "ask",
    "everyone",
    "hear_calls",
    "load_personas",
    "looks_refused",
    "model",
    "parse",
    "refuse_without_next_tokens",
    "register",
    "remark",
    "round_robin",
    "scale",
    "seed_from",
    "session",
    "shuffled",
    "simultaneous",
    "together",
    "watch_calls",
]
