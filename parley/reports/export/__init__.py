"""Datasets from runs: `make_dataset(paths, settings)`, then `write_dataset`. And whole runs as JSON lines.

dataset = make_dataset([Path("runs/rldf-….sqlite")], Settings(format="trl", threshold=3))
write_dataset(dataset, Path("age-pairs"))
"""

from parley.reports.export.dataset import Dataset, make_dataset
from parley.reports.export.settings import Settings
from parley.reports.export.write import to_transcripts, write_dataset

__all__ = [
    "Dataset",
    "Settings",
    "make_dataset",
    "to_transcripts",
    "write_dataset",
]
