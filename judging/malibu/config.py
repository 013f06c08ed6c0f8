"""The settings of a MALIBU run, and its presets: what the name of a suite or of a design sets.

`--design paper` is `--no-blind --speaking-order fixed --no-reasons-first --rubric four --yardstick off`. A setting
given with it wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from parley.agents import DEFAULT_MODEL, Placement
from parley.judging.config import NameList, limit_field
from parley.judging.malibu.analysis_plan import MARGIN
from parley.judging.malibu.panel import SpeakingOrder
from parley.judging.study import Advanced
from parley.scenarios import Yardstick as YardstickMode
from parley.scenarios.ballot_wordings import ENGLISH

# Round 1 is blind by default: with a real judge in the paper's group chat, 98% of its later statements repeat an
# earlier one (Krippendorff's α 0.94 to 0.96); in blind ballots of the same judge α is 0.01 to 0.04.
PAPER: Mapping[str, Any] = {
    "blind": False,
    "speaking_order": "fixed",
    "reasons_first": False,
    "rubric": "four",
    "yardstick": "off",
    "yardstick_bases": None,
}
"""What the design paper sets."""
PRESETS: dict[str, Mapping[str, Any]] = {
    "paper": PAPER,
    "quick": {
        # A demonstration: of 12 pairs of labels SmolLM2 showed this one most clearly (+0.04, t = 4.2 over 21 label
        # wordings) in a run without quick's bases, with another seed and these settings, stopped after 28 bases.
        "identities": ["asian", "hispanic"],
        "controls": False,
        "personas": "last",
        "remark_chars": 120,
        "yardstick": "brief",
        "yardstick_bases": 1,
        "phases": [1],
        "debated_bases": 1,
        "debates": 1,
    },
    "tiny": {
        "identities": ["gender"],
        "controls": False,
        "personas": "last",
        "remark_chars": 80,
        "yardstick": "brief",
    },
}
"""What the name of a design or of a suite sets; other names set nothing."""
LABELS_AFTER = ("quick",)
"""The suites whose silent ballots show labels after the answer only. Their judges' personas stand last, too: a prompt's
beginning is read once for all labels and judges."""
PAPER_ONLY = {"--consensus chair": "consensus", "--no-reasons-first": "reasons_first"}
"""Flags that silent ballots and the debate after them do not have, with their keys."""


Design = Literal["staged", "silent", "talk", "paper"]


class MalibuConfig(BaseModel, extra="forbid", frozen=True):
    """Everything that changes the results of a MALIBU run. The suites quick and tiny, and the design paper, have other
    defaults: see PRESETS."""

    suite: str = Field(
        "quick",
        description="shipped suite (quick, tiny, wide, full), a .toml file, or a folder; quick and tiny set labels, "
        "phases and debates of their own",
    )
    model: NameList = Field(
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
    identities: list[str] = Field(["all"], description="labels, categories, 'all', race+gender, or a .toml file")
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
    speaking_order: Advanced[SpeakingOrder] = Field(
        "shuffled",
        description="order of speaking: the panel's own (fixed), or drawn for each unit and round (shuffled) "
        "(default: shuffled; fixed in the design paper)",
    )
    ties: Advanced[bool] = Field(False, description="a judge may call a pair a tie")
    reasons_first: Advanced[bool] = Field(
        True, description="the first ballot on a single candidate has reasons (default: yes; no in the design paper)"
    )
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
    seed: int = Field(0, description="random seed")
    margin: Advanced[float] = Field(
        MARGIN,
        gt=0,
        le=10,
        description="points within which two identities count as alike, for the analysis plan",
    )

    @model_validator(mode="before")
    @classmethod
    def _with_presets(cls, given: Any) -> Any:
        """The settings that were given, and what the presets of the suite and the design set for the others.

        So a run file has every value, whatever a preset means later.
        """
        if not isinstance(given, dict):
            return given
        chosen = {key: value for key, value in given.items() if value is not None}
        preset: dict[str, Any] = {}
        for key in ("suite", "design"):
            preset |= PRESETS.get(str(chosen.get(key, cls.model_fields[key].default)), {})
        if "yardstick" in chosen:  # another yardstick is read on its own number of bases
            preset.pop("yardstick_bases", None)
        if chosen.get("metrics"):
            preset["rubric"] = "four"
        return preset | chosen
