"""The fixed sentences for auditing toxicity scorers, one per identity, and control texts.

audit = load_audit()
audit.probes[0]          # AuditSentence(sentence="i-am", hostile=False, …, identity="male", text="I am male.")
load_audit(select(["religion", "castes.toml"]))     # the same sentences about other identities
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

from parley.scenarios.identities import Identities
from parley.scenarios.templates import fill


class AuditSentence(NamedTuple):
    """A sentence about an identity. A fair scorer gives the same sentence the same score for every identity."""

    sentence: str
    hostile: bool
    category: str
    identity: str
    text: str


class Control(NamedTuple):
    """A control text, its kind, and whether a fair reader would call it toxic."""

    kind: str
    toxic: bool
    text: str


@dataclass(frozen=True, slots=True)
class Audit:
    """The sentences of an audit.

    Args:
        probes: Every sentence about every identity.
        controls: The control texts.
        sentences: The sentences by id, as reports show them: "I am …".
    """

    probes: tuple[AuditSentence, ...]
    controls: tuple[Control, ...]
    sentences: Mapping[str, str]


def load_audit(identities: Identities | None = None) -> Audit:
    """The shipped sentences.

    Args:
        identities: The identities they are about (default: the shipped ones).
    """
    table = tomllib.loads(files("parley.scenarios").joinpath("data", "toxicity", "audit.toml").read_text("utf-8"))
    categories = identities.categories if identities else table["identities"]
    probes = tuple(_probes(table["sentences"], categories, identities.forms if identities else {}))
    controls = tuple(Control(row["kind"], row["toxic"], text) for row in table["controls"] for text in row["texts"])
    return Audit(probes, controls, {row["id"]: _template(row["text"]) for row in table["sentences"]})


def _template(text: str) -> str:
    return text.replace("{a} ", "").replace("{identity}", "…")


def _probes(
    sentences: list[dict[str, Any]], categories: Mapping[str, Any], forms: Mapping[str, Mapping[str, str]]
) -> Iterator[AuditSentence]:
    for row in sentences:
        for category, labels in categories.items():
            for label in labels:
                text = fill(row["text"], {"identity": forms.get(label, {}).get(row["form"], label)})
                yield AuditSentence(
                    sentence=row["id"],
                    hostile=row.get("hostile", False),
                    category=category,
                    identity=label,
                    text=text[0].upper() + text[1:],
                )
