"""Parley's scenarios: identities, MALIBU suites and their checks, injection attempts, and topics of debates."""

from parley.base.errors import ScenarioError, UnknownName
from parley.scenarios.checks import (
    Finding,
    Rules,
    check_pair,
    check_suite,
    identity_words,
    shared_runs,
    similarity,
    words,
)
from parley.scenarios.directions import Directions, aligned_directions, direction_in_words, read_directions
from parley.scenarios.graded import check_graded
from parley.scenarios.identities import ALL, CATEGORIES, Identities, select
from parley.scenarios.injections import Attempt, Attempts, load_attempts
from parley.scenarios.malibu import VIEWS, Base, Design, Flaw, Graded, Scenario, Suite, View, Yardstick, load_suite
from parley.scenarios.topics import (
    BIASES,
    Known,
    load_topics,
    near_duplicates,
    normal,
    sample,
    topic_areas,
    topic_id,
    topics_digest,
)
from parley.scenarios.wordings import LABEL_STYLES, LabelStyle, LabelWordings, check_wordings, load_wordings

__all__ = [
    "ALL",
    "BIASES",
    "CATEGORIES",
    "LABEL_STYLES",
    "VIEWS",
    "Attempt",
    "Attempts",
    "Base",
    "Design",
    "Directions",
    "Finding",
    "Flaw",
    "Graded",
    "Identities",
    "Known",
    "LabelStyle",
    "LabelWordings",
    "Rules",
    "Scenario",
    "ScenarioError",
    "Suite",
    "UnknownName",
    "View",
    "Yardstick",
    "aligned_directions",
    "check_graded",
    "check_pair",
    "check_suite",
    "check_wordings",
    "direction_in_words",
    "identity_words",
    "load_attempts",
    "load_suite",
    "load_topics",
    "load_wordings",
    "near_duplicates",
    "normal",
    "read_directions",
    "sample",
    "select",
    "shared_runs",
    "similarity",
    "topic_areas",
    "topic_id",
    "topics_digest",
    "words",
]
