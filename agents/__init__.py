"""Agents: model clients, personas, single questions, and the two kinds of conversation, debate and critique loop.

This is the only package of Parley that imports AutoGen.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parley.agents.asking import ask
    from parley.agents.calls import Call, PromptMessage, record_calls, seed_from
    from parley.agents.conversation import gather_or_cancel
    from parley.agents.critique import Critique
    from parley.agents.debate import Cue, Debate, everyone
    from parley.agents.evaluation import Assessment, Evaluator, Unscored
    from parley.agents.framework_agent import FrameworkAgent
    from parley.agents.models import (
        DEFAULT_MODEL,
        Budget,
        Client,
        Models,
        ReplyCache,
        Session,
        model,
        register,
        session,
    )
    from parley.agents.models.session import observe_calls
    from parley.agents.persona_agent import PersonaAgent, Placement
    from parley.agents.personas import Persona, load_personas
    from parley.agents.recorded_team import RecordedTeam
    from parley.agents.seats import TeamAgent
    from parley.agents.self_debias import SelfDebiasAgent, require_next_token_probabilities
    from parley.agents.speaking_order import (
        NextSpeaker,
        Order,
        by_function,
        by_handoff,
        by_model,
        round_robin,
        shuffled,
        simultaneous,
    )
    from parley.agents.structured import (
        Readout,
        StructuredReply,
        TextReply,
        free_text,
        looks_like_refusal,
        parse,
        scale,
        structured_reply,
    )
    from parley.agents.transcripts import ParseStatus, Role, Transcript, Turn, Usage
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
    "Critique",
    "Cue",
    "Debate",
    "Evaluator",
    "FrameworkAgent",
    "ModelError",
    "Models",
    "NextSpeaker",
    "Order",
    "ParleyError",
    "ParseStatus",
    "Persona",
    "PersonaAgent",
    "Placement",
    "PromptMessage",
    "RateLimited",
    "Readout",
    "RecordedTeam",
    "ReplyCache",
    "Role",
    "SearchError",
    "SelfDebiasAgent",
    "ServerFault",
    "Session",
    "StructuredReply",
    "TeamAgent",
    "TextReply",
    "Transcript",
    "Turn",
    "Unscored",
    "Usage",
    "ask",
    "by_function",
    "by_handoff",
    "by_model",
    "everyone",
    "free_text",
    "gather_or_cancel",
    "load_personas",
    "looks_like_refusal",
    "model",
    "observe_calls",
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

_MODULES = {
    "parley.agents.asking": "ask",
    "parley.agents.calls": "Call PromptMessage record_calls seed_from",
    "parley.agents.conversation": "gather_or_cancel",
    "parley.agents.critique": "Critique",
    "parley.agents.debate": "Cue Debate everyone",
    "parley.base.errors": "AuthError BadRequest BudgetSpent ConfigError ModelError ParleyError RateLimited "
    "SearchError ServerFault",
    "parley.agents.evaluation": "Assessment Evaluator Unscored",
    "parley.agents.framework_agent": "FrameworkAgent",
    "parley.agents.models": "DEFAULT_MODEL Budget Client Models ReplyCache Session model register session",
    "parley.agents.models.session": "observe_calls",
    "parley.agents.persona_agent": "PersonaAgent Placement",
    "parley.agents.personas": "Persona load_personas",
    "parley.agents.recorded_team": "RecordedTeam",
    "parley.agents.seats": "TeamAgent",
    "parley.agents.self_debias": "SelfDebiasAgent require_next_token_probabilities",
    "parley.agents.speaking_order": "NextSpeaker Order by_function by_handoff by_model round_robin shuffled "
    "simultaneous",
    "parley.agents.structured": "Readout StructuredReply TextReply free_text looks_like_refusal parse scale "
    "structured_reply",
    "parley.agents.transcripts": "ParseStatus Role Transcript Turn Usage",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    # Imported when first used: AutoGen takes a second to load, and `parley report` does not need it.
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'parley.agents' has no attribute '{name}'")
