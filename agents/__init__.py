"""Parley's agents: model clients, personas, and the two conversations, debate and critique.

This is the only room that imports AutoGen.
"""

from agents.calls import Call, Piece, hear_calls, seed_from
from agents.contrast import ContrastAgent, refuse_without_next_tokens
from agents.conversation import together
from agents.critique import Critique
from agents.debate import Cue, Debate, everyone, round_robin, shuffled, simultaneous
from agents.errors import (
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
from agents.evaluation import Assessment, Evaluator, Unscored
from agents.models import DEFAULT_MODEL, Budget, Client, Models, ReplyCache, Session, model, register, session
from agents.models.session import watch_calls
from agents.personas import Persona, PersonaAgent, Placement, load_personas
from agents.structured import Readout, Structured, TextReply, ask, looks_refused, parse, remark, scale
from agents.transcripts import ParseStatus, Role, Transcript, Turn, Usage

__house__ = "parley"

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
