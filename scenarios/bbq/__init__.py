"""BBQ, the bias benchmark for question answering (Parrish et al. 2022): rows, targets, samples, matching of answers."""

from parley.scenarios.bbq.answers import LETTERS, Match, match
from parley.scenarios.bbq.load import Bbq, load, load_hub, settle, uncollected
from parley.scenarios.bbq.rows import (
    AS_PUBLISHED,
    CONDITIONS,
    COUNTS,
    INTERSECTIONAL,
    POLARITIES,
    SHARED,
    Answer,
    BbqRow,
    Order,
    only,
    read_row,
    sample,
    shuffled,
)
from parley.scenarios.bbq.targets import Template, stereotyped, target_of

__all__ = [
    "AS_PUBLISHED",
    "CONDITIONS",
    "COUNTS",
    "INTERSECTIONAL",
    "LETTERS",
    "POLARITIES",
    "SHARED",
    "Answer",
    "Bbq",
    "BbqRow",
    "Match",
    "Order",
    "Template",
    "load",
    "load_hub",
    "match",
    "only",
    "read_row",
    "sample",
    "settle",
    "shuffled",
    "stereotyped",
    "target_of",
    "uncollected",
]
