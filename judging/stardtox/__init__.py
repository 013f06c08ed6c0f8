"""The study `stardtox`: a team of evaluators, methods of completing sentences, and the loop that revises them."""

from parley.judging.stardtox.detox import Detoxed, Score, Step, detox
from parley.judging.stardtox.method import Desk, Method, Prompted, continuation
from parley.judging.stardtox.registry import METHODS
from parley.judging.stardtox.study import StardtoxConfig, StardtoxStudy
from parley.judging.stardtox.team import EvaluatorSpec, Team, load_team, toxicity_of

__all__ = [
    "METHODS",
    "Desk",
    "Detoxed",
    "EvaluatorSpec",
    "Method",
    "Prompted",
    "Score",
    "StardtoxConfig",
    "StardtoxStudy",
    "Step",
    "Team",
    "continuation",
    "detox",
    "load_team",
    "toxicity_of",
]
