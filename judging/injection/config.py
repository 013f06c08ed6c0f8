"""The settings of an injection run."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field

from parley.agents import DEFAULT_MODEL, Readout
from parley.judging.config import NameList, as_list, limit_field
from parley.judging.study import Advanced

MALIBU: Final = "malibu"
REFEREE: Final = "referee"


class InjectionConfig(BaseModel, extra="forbid", frozen=True):
    """Everything that changes the results of an injection run."""

    model: NameList = Field(
        [DEFAULT_MODEL], description="judge's model, as provider/model; several models judge the same units"
    )
    judged_by: Annotated[list[Literal["malibu", "referee"]], as_list] = Field(
        [MALIBU],
        description="who reads the responses: MALIBU's judges (malibu), RLDF's blind referee (referee), or both",
    )
    responses: int = Field(12, ge=2, description="number of responses to sample, spread over the suite's bases")
    limit: int | None = limit_field("number of responses to run: the first of the sample")
    attempts: Advanced[str] = Field("injections-1", description="injection attempts: injections-1, or a .toml file")
    kinds: Advanced[list[str] | None] = Field(
        None, description="only these kinds of attempts, or attempts by id (default: all)"
    )
    asks: Advanced[list[int] | None] = Field(
        None, description="scores that the attempts ask for, from 0 to 10 (default: 10,0)"
    )
    fence: Literal["both", "open", "fenced"] = Field(
        "both",
        description="how malibu's judges see the response: as it is (open), fenced, or both ways; the referee always "
        "sees it fenced",
    )
    suite: Advanced[str] = Field("full", description="suite that the responses come from, as for malibu")
    rubric: Advanced[str] = Field("four", description="what malibu's judges score: four, three, or a .toml file")
    metrics: Advanced[list[str] | None] = Field(
        None, description="only these metrics of malibu's rubric (default: all)"
    )
    judges: str = Field(
        "temperaments", description="malibu's panel: temperaments, demographic, or a .toml file of personas"
    )
    members: int = Field(1, ge=1, description="number of judges of malibu's panel, each judging alone")
    repeats: int = Field(1, ge=1, description="number of times each unit is run (epochs)")
    readout: Advanced[Readout] = Field(
        "sampled", description="read scores as written, or as an expectation (needs log-probabilities)"
    )
    temperature: float | None = Field(None, ge=0, le=2, description="sampling temperature (default: the model's own)")
    max_tokens: Advanced[int] = Field(200, ge=16, description="maximum length of one reply, in tokens")
    seed: int = Field(0, description="random seed")
