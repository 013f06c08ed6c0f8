"""Trains the scorer `ngrams` on RealToxicityPrompts with Perspective's scores, and writes its weights.

    python -m parley.judging.toxicity.ngrams_training rtp_quark_val_5000.jsonl ngrams.toml

Needs scikit-learn, which comes with the extra `toxicity`. Prompts and continuations of a fifth of the documents, chosen
by the hash of their names, are held out: the AUC that the file states is that of the written weights on them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from parley.judging.toxicity.ngrams import BITS, Weights, features

STRENGTH = 10.0
"""Inverse regularisation; 1 to 30 were tried, with held-out AUCs of 0.87 to 0.90."""
TOXIC = 0.5
HELD_OUT = 5
"""One document in this many."""


class Labelled(NamedTuple):
    """A text with its Perspective score, and whether it is held out."""

    text: str
    score: float
    held_out: bool


def document_number(filename: str) -> int:
    """A number from the hash of a document's name, which decides whether it is held out."""
    return int(hashlib.sha256(filename.encode()).hexdigest(), 16)


def labelled(lines: Iterable[str]) -> Iterator[Labelled]:
    """The prompts and continuations that have a score."""
    for line in lines:
        row = json.loads(line)
        held_out = document_number(row["filename"]) % HELD_OUT == 0
        for part in (row["prompt"], row["continuation"]):
            if part.get("toxicity") is not None:
                yield Labelled(part["text"], part["toxicity"], held_out)


def fit(texts: Sequence[Labelled]) -> tuple[list[int], float, float]:
    """Weights as whole numbers from -127 to 127, their scale, and the intercept: logistic regression on the scores."""
    import numpy as np
    from scipy.sparse import csr_matrix, vstack
    from sklearn.linear_model import LogisticRegression

    places: list[int] = []
    ends, values = [0], []
    for item in texts:
        found = sorted(features(item.text))
        places += found
        values += [1 / max(1, len(found)) ** 0.5] * len(found)
        ends.append(len(places))
    matrix: Any = csr_matrix((values, places, ends), shape=(len(texts), 1 << BITS))
    scores = np.array([item.score for item in texts])
    model = LogisticRegression(C=STRENGTH, max_iter=500)
    # a score of 0.7 is seven toxic votes of ten
    votes = np.r_[np.ones(len(texts)), np.zeros(len(texts))]
    model.fit(vstack([matrix, matrix]), votes, sample_weight=np.r_[scores, 1 - scores])
    scale = float(np.abs(model.coef_[0]).max() / 127)
    return np.round(model.coef_[0] / scale).astype(int).tolist(), scale, float(model.intercept_[0])


def main(source: str, target: str) -> None:
    from sklearn.metrics import roc_auc_score

    lines = Path(source).read_text("utf-8").splitlines()
    texts = list(labelled(lines))
    trained = [item for item in texts if not item.held_out]
    held_out = [item for item in texts if item.held_out]
    weights, scale, intercept = fit(trained)
    model = Weights(weights, scale, intercept, "")
    auc = roc_auc_score([item.score >= TOXIC for item in held_out], [model.probability(i.text) for i in held_out])
    file_hash = hashlib.sha256(Path(source).read_bytes()).hexdigest()
    packed = bytes(weight % 256 for weight in weights)
    table = {
        "trained": hashlib.sha256(packed).hexdigest()[:8],
        "command": f"python -m parley.judging.toxicity.ngrams_training {Path(source).name} ngrams.toml",
        "texts": f"{len(trained)} of {Path(source).name}, SHA-256 {file_hash}",
        "held_out": f"{len(held_out)} texts of other documents: AUC {auc:.3f} against Perspective >= {TOXIC}",
        "licence": "RealToxicityPrompts is under Apache-2.0 (Gehman et al. 2020); no text of it is in this file",
        "scale": scale,
        "intercept": intercept,
        "weights": base64.b64encode(zlib.compress(packed, 9)).decode(),
    }
    Path(target).write_text(tomli_w.dumps(table), "utf-8")
    print(f"{table['texts']}\n{table['held_out']}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m parley.judging.toxicity.ngrams_training FILE.jsonl OUT.toml")
    main(*sys.argv[1:])
