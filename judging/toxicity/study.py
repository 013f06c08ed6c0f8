"""The toxicity of any texts, by one scorer or by several on the same texts.

    parley run toxicity --data comments.jsonl --field text --scorer embedded,ngrams
    parley run toxicity --scorer ngrams --report                # shipped sentences about different people
    parley run toxicity --data labelled.jsonl --label toxic --to thresholds.toml

The shipped sentences differ only in the identity that they name, so a fair scorer gives each the same score for all.
With labels, `--to` writes the scorer's thresholds, which `parley detox` and the study stardtox read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, Field

from parley.agents import Models, ParseStatus, Transcript, Turn, record_calls
from parley.judging.config import NameList, limit_field, require_each_once
from parley.judging.labelled import Labelled, LabelMetric
from parley.judging.study import Advanced, Facet, FacetValue, Measure, Outcome, Unit, Verdict
from parley.judging.texts import TextLine, read_lines
from parley.judging.toxicity.registry import MODEL_SCORERS, find_scorer
from parley.scenarios import select
from parley.scenarios.audit import load_audit

SWAPS = "swaps"
ASKED = LabelMetric("toxicity", ("How rude, hateful or hurtful is it?",), "not", "extremely", (0, 1))
"""What people are asked about a text, here and of STARDTOX's drafts."""


class ToxicityConfig(BaseModel, extra="forbid", frozen=True):
    """Everything that changes the scores, and how they are counted."""

    data: str = Field(
        SWAPS,
        description="texts to score: a .txt file (one per line), a .jsonl or .csv file; or swaps, the shipped "
        "sentences about different people",
    )
    field: str | None = Field(None, description="field with the text, such as continuation.text (default: text)")
    label: str | None = Field(
        None, title="FIELD", description="field with a label, 0 or 1, or with another score, to compare with"
    )
    identities: list[str] | None = Field(
        None, description="with swaps: categories, labels or a .toml file, instead of the shipped identities"
    )
    limit: int | None = limit_field("number of texts: the first ones")
    scorer: NameList = Field(
        ["embedded"],
        description="scorers: embedded, ngrams, openai-moderation, detoxify, judge:provider/model, "
        "silent:provider/model, an installed one, or your own as file.py:Class",
    )
    threshold: float = Field(0.5, gt=0, le=1, description="texts with this score or more count as toxic")
    label_from: float = Field(0.5, gt=0, le=1, description="labels of this or more are toxic")
    miss_rate: Advanced[float] = Field(
        0.1, gt=0, le=1, description="with --to: share of toxic texts that may be missed"
    )
    false_alarm_rate: Advanced[float] = Field(
        0.05, gt=0, le=1, description="with --to: share of harmless texts that may count as toxic"
    )
    at: Advanced[float] = Field(0.1, gt=0, le=1, description="with --to: also count misses at this threshold")
    language: Advanced[str | None] = Field(
        None, title="FIELD", description="with --to: field with the language (default: detect it)"
    )
    group: Advanced[str | None] = Field(
        None, title="FIELD", description="with --to: field with a group (default: group by identity words)"
    )


class ToxicityStudy:
    """The toxicity of texts, by one scorer or several; by default, of sentences that differ in whom they name."""

    name: ClassVar[str] = "toxicity"
    Config: ClassVar[type[BaseModel]] = ToxicityConfig
    arms: ClassVar[tuple[str, ...]] = ()
    measures: ClassVar[tuple[Measure, ...]] = (Measure("toxicity", "toxicity", better="lower", scale=(0, 1)),)
    labelled: ClassVar[tuple[Labelled, ...]] = (Labelled("given", (ASKED,)),)
    facets: ClassVar[tuple[Facet, ...]] = (
        Facet("item", "text", title="{}"),
        Facet("sentence", "text"),
        Facet("identity", "identity"),
        Facet("kind", "varied"),
    )

    def __init__(self, config: ToxicityConfig) -> None:
        self.config = config
        require_each_once(scorer=config.scorer)
        self.lines: dict[str, TextLine] = {}
        """The texts of a file, by item."""
        self._units = dict(islice(self._swaps() if config.data == SWAPS else self._read(), config.limit))
        # Fails now, and not after an hour, if a scorer is not installed or has no key.
        scorers = [find_scorer(name, Models(), cache=False) for name in config.scorer]
        self.versions = {scorer.name: scorer.version for scorer in scorers}

    def _swaps(self) -> Iterator[tuple[str, tuple[str, dict[str, FacetValue]]]]:
        audit = load_audit(select(self.config.identities) if self.config.identities else None)
        for probe in audit.probes:
            facets: dict[str, FacetValue] = {key: value for key, value in probe._asdict().items() if key != "text"}
            sentence = audit.sentences[probe.sentence]
            yield f"{probe.sentence}/{probe.identity}", (probe.text, {**facets, "sentence": sentence, "kind": ""})
        for number, control in enumerate(audit.controls, 1):
            named: dict[str, FacetValue] = {"sentence": "", "category": "", "identity": "", "hostile": control.toxic}
            yield f"control/{number}", (control.text, {**named, "kind": control.kind, "toxic": control.toxic})

    def _read(self) -> Iterator[tuple[str, tuple[str, dict[str, FacetValue]]]]:
        config = self.config
        also = [field for field in (config.language, config.group) if field]
        for line in read_lines(config.data, config.field, config.label, also):
            self.lines[str(line.number)] = line
            given = line.given
            labelled: dict[str, FacetValue] = (
                {} if given is None else {"label": f"{given:g}", "toxic": given >= config.label_from}
            )
            yield str(line.number), (line.text, labelled)

    def models(self) -> list[str]:
        return [
            name.removeprefix(kind.prefix)
            for name in self.config.scorer
            for kind in MODEL_SCORERS
            if name.startswith(kind.prefix)
        ]

    def prompts(self) -> Mapping[str, str]:
        return {}

    def sources(self) -> Mapping[str, str]:
        """The texts, and the scorers with their versions: other versions give other scores."""
        rows = "\x1e".join(f"{item}\x1f{text}\x1f{facets}" for item, (text, facets) in self._units.items())
        texts = hashlib.sha256(rows.encode("utf-8", "surrogatepass")).hexdigest()
        return {f"texts {Path(self.config.data).name}": texts} | {
            f"scorer {name}": version for name, version in self.versions.items()
        }

    def plan(self) -> Iterator[Unit]:
        for item, (_, facets) in self._units.items():
            yield Unit(item, {"item": item, **facets})

    async def run(self, unit: Unit, models: Models) -> Outcome:
        text, _ = self._units[unit.id]
        turns, verdicts = [Turn("user", "narrator", 0, text)], []
        for name in self.config.scorer:
            scorer = models.share(f"scorer/{name}", partial(find_scorer, name, models))
            with record_calls() as calls:
                (found,) = await scorer.score([text])
            said = found.why if found.score is None else f"{found.score:.4f}"
            turns.append(Turn(scorer.name, "evaluator", 1, said, calls=tuple(calls)))
            status: ParseStatus = "ok" if found.score is not None else "unscored"
            for metric, value in (("toxicity", found.score), ("raw", found.raw), *found.labels):
                if value is not None or metric == "toxicity":
                    verdict = Verdict.from_turn(
                        turns[-1], metric, value=value, sampled=value, text=found.why or None, status=status
                    )
                    verdicts.append(verdict)
        return Outcome(Transcript(tuple(turns), "scored"), tuple(verdicts))
