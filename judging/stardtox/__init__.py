"""The study `stardtox` (Tahmasebi et al., 2025): sentences are completed, criticised by evaluators, and revised.

    parley run stardtox --data prompts.jsonl --sets moderate,high --report

Read `study` first (what is completed), then `team` (who evaluates), `methods` (the loop and its rivals) and `report`;
`detox` is the same team on any text.
"""

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
