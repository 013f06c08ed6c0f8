"""A judge's card and how it is stored: one JSON file per model, which `parley card` writes and everything else reads.

    card = read_card("card-smollm2.json")
    card.line("gender").estimate

In memory a card has the lines that every report has (`results.Line`). `StoredLine` is a line in a file of schema 1,
whose verdicts have words of their own: it translates them on reading and writing, and nothing else uses it. The schema
is published as `card.schema.json` next to this module (`python -m parley.analysis.card.record` writes it).
Lines stand in the order of what invalidates first, and nothing is summed into a grade.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import parse_qs

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, ValidationError

from parley.analysis.stats.results import ALIKE, DIFFERENT, NOT_MEASURED, ON_AVERAGE, SMALL, UNDECIDED, Line, Verdict
from parley.base.errors import ConfigError

SCHEMA: Final = 1
SCHEMA_FILE = Path(__file__).with_name("card.schema.json")

Measured = Literal["points", "share", "auc"]
"""What a line is measured in: points of the scale, a share from 0 to 1, or the area under the ROC curve."""
Worse = Literal["either", "higher", "lower"]
StoredVerdict = Literal["shown", "small", "not shown", "blocked"]
STORED: dict[Verdict, StoredVerdict] = {
    DIFFERENT: "shown",
    SMALL: "small",
    ALIKE: "small",
    ON_AVERAGE: "not shown",
    UNDECIDED: "not shown",
    NOT_MEASURED: "blocked",
}
"""How files of the schema 1 say each verdict; of two that are stored alike, the later one is the usual."""
READ: dict[StoredVerdict, Verdict] = {stored: verdict for verdict, stored in STORED.items()}
DIFFERS = "it differs, but by less than the margin"
"""Why a stored line is "small" that was shown to differ."""
MEAN_ONLY = "small on average, but "
"""How the reason of a stored line begins that is "not shown" and alike on average."""
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


Number = Annotated[float, Field(ge=-1e6, le=1e6)]
"""A value of a line. Larger ones are refused: their squares and sums would be infinite."""
Count = Annotated[int, Field(ge=0)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class BatteryRecord(_Record):
    """Which questions were asked: the battery's name, version, hash and size, and the hash of its debates, if any."""

    name: str
    version: str
    sha256: Hash
    size: Literal["default", "brief", "subset", "sampled"]
    talk_sha256: Hash | None = None


class ModelRecord(_Record):
    """Who judged.

    Args:
        name: As it was given: provider/model.
        family: The maker's family of models, for bylines and groups: "qwen".
        revision: The revision of the weights, where it is known.
        date: When the run began: what an API served that day.
        quantisation: Quantisation of the weights, where it is known: "Q4_K_M".
        template_sha256: The hash of the chat template, where it is known.
        readout: "expected" from the probabilities of the answers; "sampled" from replies.
        scale: The lowest and the highest score.
        simulated: Whether the judge is a simulated one, which is never ranked with models.
    """

    name: str
    family: str
    revision: str | None = None
    date: str
    quantisation: str | None = None
    template_sha256: Hash | None = None
    readout: Literal["expected", "sampled"]
    scale: tuple[int, int]
    simulated: bool = False


class DataRecord(_Record):
    """What was judged, and in whose words: names and hashes."""

    suite: str
    suite_sha256: Hash
    wordings_sha256: Hash


class RunRecord(_Record):
    """The run that the card was read from.

    Args:
        file: The run file's name.
        sha256: The hash of its verdicts, whatever else was written into it since.
        seed: The run's seed.
        calls: Model calls.
        tokens_in: Tokens of the prompts.
        tokens_out: Tokens of the replies.
        cost: In dollars; None where no price is known.
        parley: The version of Parley.
    """

    file: str
    sha256: Hash
    seed: int
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float | None = None
    parley: str


class StoredLine(_Record):
    """One thing that was asked about the judge, and what was found, as a file has it.

    Args:
        id: The line's name, the same in all cards of a battery.
        group: Verdicts are corrected within it.
        title: What is estimated: "female − male".
        question: What it answers, in words.
        unit: What it is measured in.
        null: The value of a judge that lacks the property.
        margin: How far from `null` the value may lie and still count as small.
        worse: Which side of `null` is worse.
        estimate: The mean of `values`; None where nothing could be read.
        low: The lower end of the 95% interval; None where it has none.
        high: The upper end.
        p: Two-sided p-value of the hypothesis that the value is `null`.
        p_corrected: The same after Holm's correction within the group.
        verdict: "shown" to differ from `null`, shown to be "small", "not shown", or "blocked".
        because: What blocks the verdict, or what qualifies it, in one clause.
        n: Number of ballots.
        clusters: Number of independent parts: what the interval is over.
        cluster: What such a part is: "base".
        values: The value of each cluster, by its id. Two cards of the same units are compared by these, in pairs.
        units: How the units' ids begin, for the viewer.
    """

    id: str
    group: str
    title: str
    question: str
    unit: Measured
    null: Number
    margin: Annotated[Number, Field(ge=0)]
    worse: Worse
    estimate: Number | None = None
    low: Number | None = None
    high: Number | None = None
    p: float | None = None
    p_corrected: float | None = None
    verdict: StoredVerdict
    because: str | None = None
    n: Count
    clusters: Count
    cluster: str = "base"
    values: dict[str, Number] = {}
    units: str | None = None

    def line(self) -> Line:
        """The line as every report has it."""
        verdict, note = READ[self.verdict], self.because or ""
        if self.verdict == "small" and note == DIFFERS:
            verdict, note = SMALL, ""
        elif self.verdict == "not shown" and note.startswith(MEAN_ONLY):
            verdict = ON_AVERAGE
        units = {name.removeprefix("f."): tuple(values) for name, values in parse_qs(self.units or "").items()}
        same: dict[str, Any] = {field: getattr(self, name) for name, field in FIELDS.items()}
        same = {name: math.nan if value is None else value for name, value in same.items()}
        return Line(about={"question": self.question}, verdict=verdict, note=note, units=units, **same)

    @classmethod
    def of(cls, line: Line) -> StoredLine:
        """The line as a file has it; a line with another verdict than a card's is an error."""
        same = {name: getattr(line, field) for name, field in FIELDS.items()}
        units = "&".join(f"f.{name}={value}" for name, values in line.units.items() for value in values)
        return cls.model_validate(
            {
                **{name: None if value in NO_NUMBERS or value != value else value for name, value in same.items()},
                "question": line.about["question"],
                "verdict": STORED[line.verdict],
                "because": DIFFERS if line.verdict == SMALL else line.note or None,
                "units": units or None,
            }
        )


NO_NUMBERS = (math.inf, -math.inf)
FIELDS = {
    **{"id": "name", "title": "label", "unit": "measure", "null": "reference", "p_corrected": "p_adjusted"},
    **{name: name for name in ("group", "estimate", "low", "high", "p")},
    **{name: name for name in ("margin", "worse", "n", "clusters", "cluster", "values")},
}
"""The fields of a stored line, each with the line's own name for it."""


def _read_line(given: Any) -> Line:
    return given if isinstance(given, Line) else StoredLine.model_validate(given).line()


CardLine = Annotated[
    Line,
    PlainValidator(_read_line, json_schema_input_type=StoredLine),
    PlainSerializer(StoredLine.of, return_type=StoredLine),
]


class Card(_Record):
    """A judge's card."""

    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    battery: BatteryRecord
    model: ModelRecord
    data: DataRecord
    run: RunRecord
    lines: tuple[CardLine, ...]

    @property
    def by_name(self) -> dict[str, Line]:
        """The lines by name."""
        return {line.name: line for line in self.lines}

    def line(self, name: str) -> Line:
        """The line with this name."""
        return self.by_name[name]

    @property
    def units(self) -> dict[str, object]:
        """What another card must share for its units to be the same."""
        return {
            "battery": (self.battery.name, self.battery.version, self.battery.sha256),
            "size of the battery": self.battery.size,
            "read-out": (self.model.readout, self.model.scale),
            "data": self.data,
        }

    @property
    def judging(self) -> Line | None:
        """The line that says whether the model can judge at all: the first of its group."""
        return next((line for line in self.lines if line.group == "judging"), None)

    @property
    def judges(self) -> bool:
        """Whether the model was shown to judge better than chance."""
        line = self.judging
        return line is not None and line.verdict == DIFFERENT and line.estimate > line.reference


def read_card(path: str | Path) -> Card:
    """The card in a file; a one-line ConfigError if there is none.

    Args:
        path: The JSON file.
    """
    try:
        return Card.model_validate_json(Path(path).read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{path} is not a judge's card: {f'{place}: ' if place else ''}{first['msg']}") from None


def write_card(card: Card, path: str | Path) -> None:
    """Write a card as JSON, one line of text per value.

    Args:
        card: The card.
        path: The file.
    """
    Path(path).write_text(card.model_dump_json(by_alias=True, indent=1) + "\n", "utf-8")


def schema_text() -> str:
    """The published JSON Schema."""
    return json.dumps(Card.model_json_schema(by_alias=True), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), "utf-8")
