"""Agents: model clients, personas, single questions, and the two kinds of conversation, debate and critique loop.

This is the only package of Parley that imports AutoGen.
"""

from typing import TYPE_CHECKING

from parley.agents.personas import Persona, load_personas
from parley.agents.providers import register
from parley.agents.transcripts import (
    LEAST_ON_SCALE,
    ON_SCALE,
    READ,
    Call,
    ParseStatus,
    PromptMessage,
    Role,
    Transcript,
    Turn,
    Usage,
    record_calls,
    seed_from,
)
from parley.base.errors import (
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
from parley.base.lazy import import_on_first_use

if TYPE_CHECKING:  # imported when first used: all of these load AutoGen, which opening a run file does not need
    from parley.agents.ballots import LOG_ODDS, SilentBallot
    from parley.agents.critique import Critique
    from parley.agents.debate import (
        Cue,
        Debate,
        Order,
        everyone,
        round_robin,
        shuffled,
        simultaneous,
    )
    from parley.agents.evaluation import Assessment, Evaluator, Unscored
    from parley.agents.guests import TeamAgent
    from parley.agents.models import (
        DEFAULT_MODEL,
        Budget,
        Client,
        Models,
        ReplyCache,
        Session,
        model,
        session,
    )
    from parley.agents.persona_agent import PersonaAgent, Placement, SelfDebiasAgent, require_next_token_probabilities
    from parley.agents.recorded_team import RecordedTeam
    from parley.agents.seats import ask, ask_silently
    from parley.agents.structured import (
        StructuredReply,
        TextReply,
        free_text,
        looks_like_refusal,
        parse,
        scale,
        structured_reply,
    )
    from parley.base.tasks import gather_or_cancel
else:
    __getattr__, __dir__ = import_on_first_use(
        __name__,
        {
            "parley.agents.ballots": ("LOG_ODDS", "SilentBallot"),
            "parley.agents.critique": ("Critique",),
            "parley.agents.debate": (
                "Cue",
                "Debate",
                "Order",
                "everyone",
                "round_robin",
                "shuffled",
                "simultaneous",
            ),
            "parley.agents.evaluation": ("Assessment", "Evaluator", "Unscored"),
            "parley.agents.guests": ("TeamAgent",),
            "parley.agents.models": (
                "DEFAULT_MODEL",
                "Budget",
                "Client",
                "Models",
                "ReplyCache",
                "Session",
                "model",
                "session",
            ),
            "parley.agents.persona_agent": (
                "PersonaAgent",
                "Placement",
                "SelfDebiasAgent",
                "require_next_token_probabilities",
            ),
            "parley.agents.recorded_team": ("RecordedTeam",),
            "parley.agents.seats": ("ask", "ask_silently"),
            "parley.agents.structured": (
                "StructuredReply",
                "TextReply",
                "free_text",
                "looks_like_refusal",
                "parse",
                "scale",
                "structured_reply",
            ),
            "parley.base.tasks": ("gather_or_cancel",),
        },
    )

__all__ = [
    "DEFAULT_MODEL",
    "LEAST_ON_SCALE",
    "LOG_ODDS",
    "ON_SCALE",
    "READ",
    "Assessment",
    "AuthError",
    "BadRequest",
    "Budget",
    "BudgetSpent",
    "Call",
    "Client",
    "ConfigError",
    "Critique",
    "Cue",
    "Debate",
    "Evaluator",
    "ModelError",
    "Models",
    "Order",
    "ParleyError",
    "ParseStatus",
    "Persona",
    "PersonaAgent",
    "Placement",
    "PromptMessage",
    "RateLimited",
    "RecordedTeam",
    "ReplyCache",
    "Role",
    "SearchError",
    "SelfDebiasAgent",
    "ServerFault",
    "Session",
    "SilentBallot",
    "StructuredReply",
    "TeamAgent",
    "TextReply",
    "Transcript",
    "Turn",
    "Unscored",
    "Usage",
    "ask",
    "ask_silently",
    "everyone",
    "free_text",
    "gather_or_cancel",
    "load_personas",
    "looks_like_refusal",
    "model",
    "parse",
    "record_calls",
    "register",
    "require_next_token_probabilities",
    "round_robin",
    "scale",
    "seed_from",
    "session",
    "shuffled",
    "simultaneous",
    "structured_reply",
]
