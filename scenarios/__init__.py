"""Parley's scenarios: what is talked about. Identities, MALIBU suites and what they are held to."""

from scenarios.checks import Finding, Rules, check_pair, check_suite, identity_words, shared_runs, similarity, words
from scenarios.errors import ScenarioError, UnknownName
from scenarios.identities import ALL, CATEGORIES, Identities, select
from scenarios.malibu import VIEWS, Base, Design, Scenario, Suite, View, load_suite

__house__ = "parley"

__all__ = [
    "ALL",
    "CATEGORIES",
    "VIEWS",
    "Base",
    "Design",
    "Finding",
    "Identities",
    "Rules",
    "Scenario",
    "ScenarioError",
    "Suite",
    "UnknownName",
    "View",
    "check_pair",
    "check_suite",
    "identity_words",
    "load_suite",
    "select",
    "shared_runs",
    "similarity",
    "words",
]
