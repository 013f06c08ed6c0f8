"""Datasets from debate runs: `make_dataset(paths, settings)`, then `write_dataset` or `push`.

dataset = make_dataset([Path("runs/rldf-….sqlite")], Settings(format="trl", threshold=3))
write_dataset(dataset, Path("age-pairs"))
"""

from parley.export.dataset import Dataset, make_dataset
from parley.export.hub import push
from parley.export.settings import Settings
from parley.export.write import write_dataset

__all__ = ["Dataset", "Settings", "make_dataset", "push", "write_dataset"]
