"""The settings of a MALIBU run, and its named designs.

A design is a few settings under one name: `--design paper` is `--no-ballots --scale 0-10 --cells one --no-blind
--speaking-order fixed --no-ties --no-reasons-first`. A setting that is given besides it wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from parley.agents import DEFAULT_MODEL, Placement, Readout
from parley.judging.config import NameList, as_list, limit_field
from parley.judging.malibu.analysis_plan import MARGIN
from parley.judging.malibu.panel import SpeakingOrder
from parley.judging.malibu.wording import PARAPHRASES, PLAIN
from parley.judging.study import Advanced
from parley.scenarios import Design, LabelStyle
from parley.scenarios import Yardstick as YardstickMode

# Round 1 is blind: with a real judge in the paper's group chat, 98% of its later statements repeat an earlier one
# (Krippendorff's α 0.94 to 0.96); in blind ballots of the same judge α is 0.01 to 0.04.
UNWORDED = {"ballots": False, "scale": "0-10", "debate": "all"}
OURS = {"blind": True, "speaking_order": "shuffled", "ties": True, "reasons_first": True}
WORDED = {"ballots": True, "scale": "1-9", "cells": "one", **OURS, "ties": False}
DESIGNS: Mapping[Design, Mapping[str, Any]] = {
    "staged": {**WORDED, "debate": "sample"},
    "silent": {**WORDED, "debate": "none"},
    "talk": {**WORDED, "debate": "all"},
    "counterbalanced": {**UNWORDED, "cells": "all", **OURS},
    "randomised": {**UNWORDED, "cells": "one", **OURS},
    "paper": {
        **UNWORDED,
        "cells": "one",
        "blind": False,
        "speaking_order": "fixed",
        "ties": False,
        "reasons_first": False,
    },
}


class MalibuConfig(BaseModel):
    """Everything that changes the results of a MALIBU run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: str = Field("quick", description="shipped suite (quick, full), a .toml file, or a folder of them")
    model: NameList = Field(
        [DEFAULT_MODEL], description="judges' model, as provider/model; several models judge the same units"
    )
    design: Design | None = Field(
        None,
        description="silent ballots, then a debate on a sample (staged), silent ballots only (silent), silent ballots "
        "and a debate on every unit (talk), or the paper's protocol (paper) (default: the suite's)",
    )
    generator: str | None = Field(
        None, description="model that writes new responses (default: the suite's frozen responses)"
    )
    scenarios: Advanced[list[str] | None] = Field(
        None, description="only these scenarios, by id or base (default: all)"
    )
    per_base: int | None = Field(None, ge=1, description="maximum number of scenarios per base (default: all)")
    limit: int | None = limit_field("number of scenarios in all, from as many bases as possible")
    ballots: Advanced[bool] = Field(
        False, description="whether judges cast silent ballots (default: yes; not in the paper's design)"
    )
    debate: Advanced[Literal["none", "sample", "all"]] = Field(
        "all", description="what is debated: nothing, one scenario of a few bases (sample), or every unit"
    )
    debated_bases: Advanced[int] = Field(10, ge=1, description="number of bases in the sample that is debated")
    scale: Advanced[Literal["1-9", "0-10"]] = Field(
        "0-10", description="lowest and highest score (default: 1-9; 0-10 in the paper's design)"
    )
    wordings: str = Field("english", description="wordings of labels and questions: english, or a .toml file")
    wordings_per_base: Advanced[int] = Field(
        1, ge=1, description="number of label wordings per base; several are crossed with blocks of as many bases"
    )
    samples: Advanced[int] = Field(
        5, ge=1, description="replies that are averaged into a ballot of a model without log-probabilities"
    )
    phases: Advanced[list[Literal[1, 2]]] = Field([1, 2], description="1: single candidates, 2: pairs")
    identities: list[str] | None = Field(
        None, description="labels, categories, 'all', race+gender, or a .toml file (default: the suite's)"
    )
    rubric: Advanced[str | None] = Field(
        None,
        description="what is scored: overall, four, three (appendix A.2), or a .toml file (default: overall; four with "
        "--metrics and in the paper's design)",
    )
    metrics: Advanced[list[str] | None] = Field(
        None, description="metrics of the rubric, each asked in a call of its own in silent ballots; 'all' for all"
    )
    rounds: int = Field(2, ge=1, le=10, description="rounds of the panel; the judges discuss from round 2 on")
    blind: Advanced[bool] = Field(
        True, description="no judge hears another before its first ballot (default: yes; not in the paper's design)"
    )
    speaking_order: Advanced[SpeakingOrder] = Field(
        "shuffled",
        description="the panel's own (fixed), or drawn for each unit and round (shuffled) "
        "(default: shuffled; fixed in the paper's design)",
    )
    ties: Advanced[bool] = Field(
        True, description="a judge may call a pair a tie (default: yes; not in the paper's design)"
    )
    reasons_first: Advanced[bool] = Field(
        True, description="the first ballot on a single candidate has reasons (default: yes; not in the paper's design)"
    )
    cells: Advanced[Literal["all", "one"]] = Field(
        "all",
        description="assignments of labels to responses and orders of a pair: all four, or one drawn by the seed "
        "(default: all; one in the designs randomised and paper)",
    )
    controls: Advanced[bool | None] = Field(None, description="also run the null controls (default: the suite's)")
    yardstick: Advanced[YardstickMode | None] = Field(
        None,
        description="graded responses that the judges score too, without labels: every text by every judge (full), a "
        "few readings (brief), or none (off) (default: the suite's)",
    )
    yardstick_bases: Advanced[int | None] = Field(
        None, ge=1, description="number of bases in the yardstick (default: those of the run; brief: 8)"
    )
    judges: str | None = Field(
        None,
        description="panel: temperaments, demographic, or a .toml file of personas (default: temperaments; one neutral "
        "judge for silent ballots that no debate follows)",
    )
    personas: Advanced[Placement | None] = Field(
        None, description="judges' personas as system messages, or last in the prompt (default: the suite's)"
    )
    labels: Advanced[Literal["beside", "last"] | None] = Field(
        None, description="identity labels beside the responses, or at the end of the prompt (default: beside)"
    )
    paraphrases: Advanced[int] = Field(
        1,
        ge=1,
        le=PARAPHRASES,
        description=f"wordings of the judging prompt, in turn over scenarios and repeats (1 to {PARAPHRASES})",
    )
    label_style: Advanced[Annotated[list[LabelStyle], as_list]] = Field(
        list(PLAIN),
        description="wordings of the labels, in turn over scenarios and repeats: as they are (plain), 'a woman' "
        "(noun), a first name (name), 'she/her' (pronoun)",
    )
    remark_chars: Advanced[int | None] = Field(
        None, ge=20, description="maximum characters of a remark or justification (default: the suite's)"
    )
    # Off by default: a fence changes the paper's prompt, and the frozen responses are ours and checked. Responses of a
    # generator, or of anybody else, should be fenced.
    fence: Advanced[bool | None] = Field(
        None, description="fence responses and remarks as data (default: unfenced, as in the paper)"
    )
    consensus: Advanced[Literal["mean", "chair"]] = Field(
        "mean", description="the panel's score: mean of the last round, or a chair's statement"
    )
    repeats: int = Field(1, ge=1, description="number of times each unit is run (epochs)")
    readout: Advanced[Readout] = Field(
        "sampled", description="read scores as written, or as an expectation (needs log-probabilities)"
    )
    temperature: float | None = Field(None, ge=0, le=2, description="sampling temperature (default: the model's own)")
    max_tokens: Advanced[int] = Field(400, ge=16, description="maximum length of one reply, in tokens")
    seed: int = Field(0, description="random seed")
    margin: Advanced[float] = Field(
        MARGIN,
        gt=0,
        le=10,
        description="points of ten within which two identities count as alike, for the analysis plan",
    )
