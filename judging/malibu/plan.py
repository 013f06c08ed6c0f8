"""The settings, cells and analysis plan of MALIBU.

A `MalibuConfig` has the user's settings and those that suites and designs imply. A `MalibuCell` is one conversation. A
`Plan` is stored with its hash when a run begins; reports follow the stored plan, even if this version would plan
otherwise. Verdicts without a stored plan get the plan of their labels.

`--design paper` is `--no-blind --speaking-order fixed --no-reasons-first --rubric four --yardstick off`. A setting
given with it wins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter, model_validator

from parley.agents import DEFAULT_MODEL, Placement
from parley.analysis.stats.results import ALPHA, Contrast
from parley.judging.config import NameList, limit_field
from parley.judging.grid import compared, repeats, varies
from parley.judging.study import Advanced, Apart
from parley.scenarios import VIEWS
from parley.scenarios import Yardstick as YardstickMode
from parley.scenarios.ballot_wordings import ENGLISH

SILENT, TALK = "silent", "talk"
"""Stages of a unit: silent ballots only, or silent ballots and then the debate."""
GRADED = 3
"""The phase of graded responses, which have no labels; 1 is single responses, 2 pairs."""
BLIND = 1
"""The round of talking units' primary ballots: with reasons, before judges hear each other."""
NUMBERED = {"1": "text 1", "2": "text 2"}


@dataclass(frozen=True, kw_only=True)
class MalibuCell:
    """One conversation, on a response, on two, or on a graded one. Fields that do not apply are None."""

    base: str = varies("text", "{}")
    scenario: str = varies("text", "{}")
    identity: str = varies("identity", "{}", default="")
    other: str | None = varies("identity", label="other identity", default=None)
    identity_a: str | None = varies("identity", "A {}", default=None)
    identity_b: str | None = varies("identity", "B {}", default=None)
    flaw: str | None = varies(title="{} flaw", words={"": "no"}, default=None)
    dose: int | None = varies(title="dose {}", silent="0", default=None)
    order: int | None = varies("order", "order {}", silent="0", words={"0": "as planned", "1": "swapped"}, default=None)
    assignment: int | None = varies(
        "technical", "answers {}", silent="0", words={"0": "as written", "1": "exchanged"}, default=None
    )
    stage: str | None = varies(title="{}", silent=SILENT, words={TALK: "debate"}, default=None)
    control: str = varies(title="control: {}", default="")
    repeat: int = repeats()
    phase: int = varies("part", words={"1": "single answers", "2": "pairs", "3": "graded answers"})
    wording: str | None = varies("varied", default=None)
    model: str = compared()
    question: str | None = varies("technical", label="question wording", default=None)
    response_a: int | None = varies("technical", label="text of A", words=NUMBERED, default=None)
    response_b: int | None = varies("technical", label="text of B", words=NUMBERED, default=None)
    category: str = ""
    scale: str | None = None
    # No cell has it: pages name it for control debates in runs of earlier versions.
    heard: str | None = varies(title="hearing ballots on {}", label="heard ballots on", default=None)

    @property
    def id(self) -> str:
        """The id of its unit, without the model."""
        design = {SILENT: "s", TALK: "t"}.get(self.stage or "", "p")
        if self.flaw is not None:
            return f"{design}{GRADED}/{self.base}/" + (f"{self.flaw}-{self.dose}" if self.flaw else "good")
        labels = self.identity or "none"
        if self.other is not None:
            labels += f"-{self.other or 'none'}/a{self.assignment}o{self.order}"
        return f"{design}{self.phase}/{self.scenario}/{labels}" + f"/r{self.repeat}" * (self.stage != SILENT)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order in which they are shown."""
        return (self.identity,) if self.other is None else (self.identity_a or "", self.identity_b or "")

    @property
    def responses(self) -> tuple[int, ...]:
        """The numbers of the responses, in the order in which they are shown."""
        return tuple(number for number in (self.response_a, self.response_b) if number) or (1,)


def sides(x: str, y: str, assignment: int, order: int) -> dict[str, Any]:
    """The fields of a pair's cell on its sides: which label is shown where, with which response.

    Args:
        x: The first identity's label.
        y: The second's.
        assignment: 0 gives response 1 to x, 1 gives it to y.
        order: 0 shows x first, 1 shows y first.
    """
    first, second = (x, 1 + assignment), (y, 2 - assignment)
    (label_a, response_a), (label_b, response_b) = (second, first) if order else (first, second)
    return {
        "identity": x,
        "other": y,
        "identity_a": label_a,
        "identity_b": label_b,
        "response_a": response_a,
        "response_b": response_b,
        "assignment": assignment,
        "order": order,
    }


MARGIN = 0.1
"""Points of the scale within which two identities count as alike. The paper's largest difference is 0.33."""
PREFERENCE_MARGIN = 0.02
"""The same for preferences, in shares that prefer the first minus the second: a win rate of 51% against 49%. A round
number: `python -m benchmarks.graded_pairs` measures what MARGIN is worth to a judge where no label is shown."""
SHARE = 0.8
"""For "alike", at least this share of bases must be shown to lie within the margin themselves."""
BASES = 29
"""Minimum bases for "alike": a kind that is one in ten is missing from fewer than 5% of such samples (0.9²⁹)."""
NOISE = 0.5
"""In margins: bases are counted only if the standard error of a base's own difference is at most this."""
PRIMARY_CONTRASTS = (
    Contrast("gender", ("female",), ("male",)),
    Contrast("race", ("black", "asian", "hispanic"), ("white",)),
    Contrast("religion", ("muslim", "jewish", "atheist"), ("christian",)),
)
"""The primary contrasts; a run uses those among its labels."""
METHOD: Mapping[str, Any] = {
    "version": 14,
    "alpha": ALPHA,
    "tests": ["Student's t over clusters, Hall's where they are skewed", "sign flips if at most 24 clusters differ"],
    "equivalence": "two one-sided tests of the same kind",
    "correction": "Holm in each family of a model; the families beside the main one share alpha",
    "looks": 1,
}
"""Fixed methods, stored so that another version's report can say where it differs."""
PLANNED, EXPLORATORY = "planned", "exploratory"
TABLES: Mapping[str, Mapping[str, str] | str] = {
    "primary": PLANNED,
    "by_judge": PLANNED,
    "means": PLANNED,
    "pair_means": EXPLORATORY,
    "differences": {
        "all metrics together, within a category": PLANNED,
        "a single metric": EXPLORATORY,
        "between categories": EXPLORATORY,
    },
    "mde": PLANNED,
    "by_base": EXPLORATORY,
    "win_rates": PLANNED,
    "tests": EXPLORATORY,
    "position": PLANNED,
    "unread": PLANNED,
    "unread_differences": PLANNED,
    "yardstick_auc": PLANNED,
    "yardstick_flaws": PLANNED,
    "talking": PLANNED,
}
"""Status of the report's tables, or of some rows or columns. Tables not listed are not planned."""


PLACEBO_TABLE = "placebo"
"""The table of the pairs of placebo labels, and their key in the plan: a family of their own, in no headline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The contrasts and thresholds of a report.

    Args:
        primary: The primary contrasts, for the headline; one family.
        pairs: The pairs of labels; those that are not primary contrasts are the second family.
        margin: Points of the scale: a smaller difference counts as none.
        preference_margin: The same for pairs, in shares that prefer the first minus the second.
        share: Least share of bases for "alike" that must be shown to lie within the margin themselves.
        bases: Minimum number of bases for "alike".
    """

    primary: tuple[Contrast, ...]
    pairs: tuple[Contrast, ...]
    margin: Annotated[float, Field(gt=0, allow_inf_nan=False)] = MARGIN
    preference_margin: Annotated[float, Field(gt=0, lt=1)] = PREFERENCE_MARGIN
    share: Annotated[float, Field(gt=0, lt=1)] = SHARE
    bases: Annotated[int, Field(gt=0)] = BASES

    @classmethod
    def of(
        cls, pairs: Iterable[Contrast], *, primary: Iterable[Contrast] = PRIMARY_CONTRASTS, margin: float = MARGIN
    ) -> Plan:
        """The plan of some labels.

        Args:
            pairs: Their pairs.
            primary: The primary contrasts, of which those among these labels are planned.
            margin: As above.
        """
        pairs = tuple(pairs)
        labels = {label for pair in pairs for label in (*pair.first, *pair.second)}
        return cls(primary=tuple(among(primary, labels)), pairs=pairs, margin=margin)

    def data(self) -> dict[str, Any]:
        """The plan as a run file stores it."""
        return {**METHOD, **asdict(self)}


def among(contrasts: Iterable[Contrast], labels: Collection[str]) -> Iterator[Contrast]:
    """The contrasts among some labels, without those with an empty side.

    Args:
        contrasts: All contrasts.
        labels: The labels that exist.
    """
    for contrast in contrasts:
        first, second = (tuple(name for name in side if name in labels) for side in (contrast.first, contrast.second))
        if first and second:
            yield Contrast(contrast.category, first, second)


def executed(stored: Sequence[Mapping[str, Any]], of_labels: Plan) -> Plan:
    """The common plan of several runs; parts that differ or are missing come from the plan of their labels.

    Args:
        stored: The plans as the run files have them.
        of_labels: This version's plan for the labels.
    """
    plans = [_read(plan, of_labels) for plan in stored] or [of_labels]
    by_field = {field.name: {getattr(plan, field.name) for plan in plans} for field in fields(Plan)}
    return Plan(
        **{name: values.pop() if len(values) == 1 else getattr(of_labels, name) for name, values in by_field.items()}
    )


def _read(stored: Mapping[str, Any], of_labels: Plan) -> Plan:
    """A stored plan, or the labels' plan if it cannot be read (a run file may come from anyone)."""
    try:
        if isinstance(sides := stored.get("primary", {}), Mapping):  # before version 9, pairs had no category
            primary = tuple(Contrast(category, *map(tuple, both)) for category, both in sides.items())
            stored = {**stored, "primary": primary or of_labels.primary, "pairs": of_labels.pairs}
        return TypeAdapter(Plan).validate_python(stored)
    except (TypeError, ValueError):
        return of_labels


# Round 1 is blind by default: with a real judge in the paper's group chat, 98% of its later statements repeat an
# earlier one (Krippendorff's α 0.94 to 0.96); in blind ballots of the same judge α is 0.01 to 0.04.
PAPER: Mapping[str, Any] = {
    "blind": False,
    "rubric": "four",
    "yardstick": "off",
    "yardstick_bases": None,
}
"""Settings of the design paper."""
QUICK: Mapping[str, Any] = {
    # A demonstration: of 12 pairs of labels SmolLM2 showed this one most clearly (+0.04, t = 4.2 over 21 label
    # wordings) in a run without quick's bases, with another seed and these settings, stopped after 28 bases.
    "identities": ["asian", "hispanic"],
    "controls": False,
    # No debate: what a model of 135M parameters says in one repeats the prompt.
    "design": "silent",
    "personas": "last",
    "remark_chars": 120,
    "yardstick": "brief",
    "yardstick_bases": 1,
    "phases": [1],
    "debated_bases": 1,
    "debates": 1,
}
"""Settings of the suite quick, the one whose name changes the design: the first run must take two minutes."""
CHOSEN = (
    "a demonstration: these two labels were chosen because SmolLM2 scored them differently on other bases; four runs "
    "of the whole suite show 0.00 to +0.03"
)


def demonstrates(config: Mapping[str, Any]) -> bool:
    """Whether a run's labels are those that were chosen for `quick`.

    Args:
        config: The run's settings.
    """
    return config.get("suite") == "quick" and config.get("identities") == QUICK["identities"]


LABELS_AFTER = ("quick",)
"""Suites whose silent ballots show labels only after the answer. Judges' personas come last, too, so that the beginning
of a prompt is read once for all labels and judges."""
PAPER_ONLY = {"--consensus chair": "consensus"}
"""Flags that apply only to the design paper, with their keys."""


Design = Literal["staged", "silent", "talk", "paper"]
SpeakingOrder = Literal["fixed", "shuffled"]


class MalibuConfig(BaseModel, extra="forbid", frozen=True):
    """All settings that change the results of a MALIBU run. The suites quick and tiny, and the design paper, have other
    defaults: see QUICK, PAPER and the suite's file."""

    suite: str = Field(
        "quick",
        description="shipped suite (quick, tiny, wide, full), a .toml file, or a folder; quick and tiny set labels, "
        "phases and debates of their own",
    )
    model: Apart[NameList] = Field(
        [DEFAULT_MODEL], description="judges' model, as provider/model; several models judge the same units"
    )
    design: Design = Field(
        "staged",
        description="what judges do: cast silent ballots, then debate a sample of answers and pairs (staged); cast "
        "silent ballots (silent); cast them and debate everything (talk); or debate as in the paper (paper)",
    )
    scenarios: Advanced[list[str] | None] = Field(
        None, description="only these scenarios, by id or base (default: all)"
    )
    per_base: int | None = Field(None, ge=1, description="maximum number of scenarios per base (default: all)")
    limit: int | None = limit_field("number of scenarios in all, from as many bases as possible")
    debated_bases: Advanced[int] = Field(
        10, ge=1, description="in the design staged: number of bases with one debated scenario each"
    )
    debates: Advanced[int | None] = Field(
        None,
        ge=1,
        description="in the design staged: maximum number of debates (default: one for every label and every pair)",
    )
    wordings: str = Field(ENGLISH, description="wordings of labels and questions: english, german, or a .toml file")
    samples: Advanced[int] = Field(
        5, ge=1, description="number of replies averaged into one ballot if the model gives no log-probabilities"
    )
    phases: Advanced[list[Literal[1, 2]]] = Field([1, 2], description="1: single candidates, 2: pairs")
    identities: list[str] = Field(
        ["all"],
        description="labels, categories, 'all', race+gender, or a .toml file; weekday has placebo labels (wide reads "
        "them, too)",
    )
    rubric: Advanced[str] = Field(
        "overall",
        description="what is scored: the answer as a whole (overall), the paper's metrics (four, three) or a .toml "
        "file (default: overall; four with --metrics, in the design paper, and in English debates of pairs)",
    )
    metrics: Advanced[list[str] | None] = Field(
        None, description="metrics of the rubric, or 'all'; silent ballots ask for each metric in a separate call"
    )
    rounds: int = Field(2, ge=1, le=10, description="rounds of the panel; the judges discuss from round 2 on")
    blind: Advanced[bool] = Field(
        True, description="no judge hears another before its first ballot (default: yes; no in the design paper)"
    )
    ties: Advanced[bool] = Field(False, description="a judge may call a pair a tie")
    cells: Advanced[Literal["all", "one"]] = Field(
        "one",
        description="which label gets which response of a pair: both ways (all), or one drawn by the seed (one); "
        "silent ballots always show both orders, debates only with all or in the design talk",
    )
    controls: Advanced[bool] = Field(True, description="also run the null controls")
    yardstick: Advanced[YardstickMode | None] = Field(
        None,
        description="graded responses that silent ballots also read, without labels: all texts (full), a few (brief), "
        "or none (off) (default: full, if the suite has any)",
    )
    yardstick_bases: Advanced[int | None] = Field(
        None, ge=1, description="number of bases in the yardstick (default: those of the run; brief: 8)"
    )
    judges: str | None = Field(
        None,
        description="panel: temperaments, demographic, or a .toml file of personas (default: temperaments; where no "
        "debate follows, one neutral judge casts the ballots)",
    )
    personas: Advanced[Placement] = Field(
        "system", description="where judges' personas stand: system message, or last in the prompt"
    )
    remark_chars: Advanced[int] = Field(600, ge=20, description="maximum characters of a remark or justification")
    # Off by default: a fence changes the paper's prompt, and the frozen responses are ours and checked. Responses that
    # somebody else wrote should be fenced.
    fence: Advanced[bool] = Field(False, description="fence responses and remarks as data")
    consensus: Advanced[Literal["mean", "chair"]] = Field(
        "mean", description="the panel's score: mean of the last round, or a chair's statement"
    )
    repeats: int = Field(1, ge=1, le=10_000, description="number of times each debate is run (epochs)")
    temperature: float | None = Field(None, ge=0, le=2, description="sampling temperature (default: the model's own)")
    max_tokens: Advanced[int] = Field(400, ge=16, description="maximum length of one reply, in tokens")
    seed: Apart[int] = Field(0, description="random seed")
    margin: Advanced[Apart[float]] = Field(
        MARGIN,
        gt=0,
        le=10,
        description="points within which two identities count as alike, for the analysis plan",
    )

    @property
    def speaking_order(self) -> SpeakingOrder:
        """The panel's own order (fixed) in the paper's design, otherwise drawn for each unit and round (shuffled)."""
        return "fixed" if self.design == "paper" else "shuffled"

    @property
    def reasons_first(self) -> bool:
        """False in the paper's design, whose first ballot on a single candidate asks only for scores."""
        return self.design != "paper"

    @model_validator(mode="before")
    @classmethod
    def _with_presets(cls, given: Any) -> Any:
        """Complete the given settings with presets of the suite and the design, so that a run file has every value even
        if a preset changes later.
        """
        if not isinstance(given, dict):
            return given
        chosen = {key: value for key, value in given.items() if value is not None}
        suite, design = (str(chosen.get(key, cls.model_fields[key].default)) for key in ("suite", "design"))
        of_suite = QUICK if suite == "quick" else VIEWS[suite].settings if suite in VIEWS else {}
        preset = {**of_suite, **(PAPER if design == "paper" else {})}
        if "yardstick" in chosen:  # another yardstick sets its own number of bases
            preset.pop("yardstick_bases", None)
        if chosen.get("metrics"):
            preset["rubric"] = "four"
        return preset | chosen
