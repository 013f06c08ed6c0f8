"""Parley's scenarios: what is talked about. Identities and MALIBU suites."""

from scenarios.errors import ScenarioError, UnknownName
from scenarios.identities import ALL, CATEGORIES, category_of, pairs, select
from scenarios.malibu import VIEWS, Design, Scenario, Suite, View, load_suite

__house__ = "parley"

__all__ = [
    "ALL",
    "CATEGORIES",
    "VIEWS",
    "Design",
    "Scenario",
    "ScenarioError",
    "Suite",
    "UnknownName",
    "View",
    "category_of",
    "load_suite",
    "pairs",
    "select",
]
