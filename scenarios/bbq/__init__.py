"""BBQ, the bias benchmark for question answering (Parrish et al. 2022): rows, targets, samples, matching of answers."""

from parley.scenarios.bbq.answers import AROUND, LETTERS, match
from parley.scenarios.bbq.load import Bbq, load, load_hub
from parley.scenarios.bbq.rows import AS_PUBLISHED, SHARED, BbqRow, Order, only, sample, shuffled

__all__ = [
    "AROUND",
    "AS_PUBLISHED",
    "LETTERS",
    "SHARED",
    "Bbq",
    "BbqRow",
    "Order",
    "load",
    "load_hub",
    "match",
    "only",
    "sample",
    "shuffled",
]
