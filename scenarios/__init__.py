"""Parley's scenarios: identities, MALIBU suites and their checks, and topics of debates."""

from parley.base.errors import ScenarioError, UnknownName
from parley.base.text import normal, words
from parley.scenarios.ballot_texts import BallotWordings, LabelWording, QuestionWording
from parley.scenarios.ballot_wordings import load_ballot_wordings, names_wordings
from parley.scenarios.checks import (
    Finding,
    Rules,
    check_graded,
    check_pair,
    check_suite,
    identity_words,
    language_of_identity_words,
    shared_runs,
    similarity,
)
from parley.scenarios.identities import ALL, CATEGORIES, Identities, names_identities, select
from parley.scenarios.label_choice import LabelChoice
from parley.scenarios.malibu import (
    SHIPPED,
    VIEWS,
    Base,
    Flaw,
    Graded,
    Scenario,
    Suite,
    View,
    Yardstick,
    load_suite,
)
from parley.scenarios.topics import (
    BIASES,
    TopicIndex,
    load_topics,
    near_duplicates,
    sample,
    topic_areas,
    topic_id,
    topics_digest,
)
from parley.scenarios.wording_checks import (
    built_in,
    check_ballot_wordings,
    check_identities,
    read_choice,
    usable_labels,
)

__all__ = [
    "ALL",
    "BIASES",
    "CATEGORIES",
    "SHIPPED",
    "VIEWS",
    "BallotWordings",
    "Base",
    "Finding",
    "Flaw",
    "Graded",
    "Identities",
    "LabelChoice",
    "LabelWording",
    "QuestionWording",
    "Rules",
    "Scenario",
    "ScenarioError",
    "Suite",
    "TopicIndex",
    "UnknownName",
    "View",
    "Yardstick",
    "built_in",
    "check_ballot_wordings",
    "check_graded",
    "check_identities",
    "check_pair",
    "check_suite",
    "identity_words",
    "language_of_identity_words",
    "load_ballot_wordings",
    "load_suite",
    "load_topics",
    "names_identities",
    "names_wordings",
    "near_duplicates",
    "normal",
    "read_choice",
    "sample",
    "select",
    "shared_runs",
    "similarity",
    "topic_areas",
    "topic_id",
    "topics_digest",
    "usable_labels",
    "words",
]
