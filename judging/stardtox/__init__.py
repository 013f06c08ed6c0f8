"""The study `stardtox`: a team of evaluators, methods of completing sentences, and the loop that revises them."""

from parley.judging.stardtox.detox import Detoxed, Iteration, Score, detox, detox_async
from parley.judging.stardtox.methods import (
    METHODS,
    CompletionContext,
    CompletionMethod,
    PromptedCompletion,
    continuation,
)
from parley.judging.stardtox.study import StardtoxConfig, StardtoxStudy
from parley.judging.stardtox.team import EvaluatorSpec, Team, load_team, toxicity_of

__all__ = [
    "METHODS",
    "CompletionContext",
    "CompletionMethod",
    "Detoxed",
    "EvaluatorSpec",
    "Iteration",
    "PromptedCompletion",
    "Score",
    "StardtoxConfig",
    "StardtoxStudy",
    "Team",
    "continuation",
    "detox",
    "detox_async",
    "load_team",
    "toxicity_of",
]
