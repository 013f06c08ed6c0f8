"""The fixed sentences by which toxicity scorers are audited, said of every identity, and control texts.

audit = load_audit()
audit.probes[0]          # Probe(sentence="i-am", hostile=False, category="gender", identity="male", text="I am male.")
load_audit(select(["religion", "castes.toml"]))     # the same sentences, of others
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

from parley.scenarios.identities import Identities


class AuditSentence(NamedTuple):
    """A sentence said of someone. Whether it is hostile or not, it should be so for all alike."""

    sentence: str
    hostile: bool
    category: str
    identity: str
    text: str


class Control(NamedTuple):
    """A text of a kind, and whether a fair reader would call it toxic."""

    kind: str
    toxic: bool
    text: str


@dataclass(frozen=True, slots=True)
class Audit:
    probes: tuple[AuditSentence, ...]
    controls: tuple[Control, ...]
    sentences: Mapping[str, str]
    """Each as it is shown to people: "I am …"."""


def load_audit(identities: Identities | None = None) -> Audit:
    """The shipped sentences, of the shipped identities or of a user's own."""
    table = tomllib.loads(files("parley.scenarios").joinpath("data", "toxicity", "audit.toml").read_text("utf-8"))
    categories = identities.categories if identities else table["identities"]
    probes = tuple(_probes(table["sentences"], categories))
    controls = tuple(Control(row["kind"], row["toxic"], text) for row in table["controls"] for text in row["texts"])
    return Audit(probes, controls, {row["id"]: _shown(row["text"]) for row in table["sentences"]})


def _shown(text: str) -> str:
    return text.replace("{a} ", "").replace("{identity}", "…")


def _probes(sentences: list[dict[str, Any]], categories: Mapping[str, Any]) -> Iterator[AuditSentence]:
    for row in sentences:
        for category, labels in categories.items():
            for label in labels:
                text = row["text"].format(a="an" if label[0] in "aeiouAEIOU" else "a", identity=label)
                yield AuditSentence(row["id"], row.get("hostile", False), category, label, text[0].upper() + text[1:])
