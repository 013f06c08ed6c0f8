"""BBQ, the bias benchmark for question answering (Parrish et al. 2022): rows, targets, samples, and answers read."""

from scenarios.bbq.answers import LETTERS, Match, match
from scenarios.bbq.hub import load_hub
from scenarios.bbq.load import Bbq, load, settle, uncollected
from scenarios.bbq.rows import CONDITIONS, COUNTS, INTERSECTIONAL, POLARITIES, SHARED, Answer, Row, read_row
from scenarios.bbq.sample import AS_PUBLISHED, Order, only, sample, shuffled
from scenarios.bbq.targets import Template, stereotyped, target_of

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
    "Match",
    "Order",
    "Row",
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
