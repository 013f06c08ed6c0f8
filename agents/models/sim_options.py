"""The options of simulated models: `sim/judge?base=6&female=+0.4&examiner.female=-2`.

Any option that is not in `SimOptions` is an effect: `female=+0.4` adds 0.4 points to the scores of the label "female".
A judge's name before an option restricts it to that judge (`examiner.female=-2`).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any

from pydantic import Field, model_validator

from parley.agents.models.request import ClientOptions
from parley.agents.models.sim_judge import is_named


class SimOptions(ClientOptions, extra="allow", frozen=True):
    """The options of simulated models; further ones are effects by label."""

    max_connections: int = Field(1024, ge=1)
    base: float | None = Field(
        None, description="mean score (default: 7 of 10, 3 of 10 where a severity is scored; 85% of a longer scale)"
    )
    noise: float | None = Field(None, ge=0, description="standard deviation of one score (default: 10% of the scale)")
    item: float = Field(0.0, ge=0, description="standard deviation of a shift per text, which all its judges share")
    judge: float = Field(0.0, ge=0, description="standard deviation of a shift per persona")
    varies: float = Field(
        0.0, ge=0, description="standard deviation of a label's effect from text to text, in silent ballots"
    )
    silent: bool = Field(True, description="whether it gives log-probabilities for silent ballots")
    position: float = Field(0.0, description="points added for the candidate that comes first")
    round: float = Field(0.0, description="points added per round after the first, or per rephrasing (see `sim_judge`)")
    toxic: float = Field(0.0, ge=0, le=1, description="share of free texts that are insulting")
    heeds: float = Field(0.0, ge=0, le=1, description="rate at which a revision removes an insult")
    latency: float = Field(0.0, ge=0, description="seconds before each reply")
    fail: float = Field(0.0, ge=0, le=1, description="share of calls that fail")
    malformed: float = Field(0.0, ge=0, le=1, description="share of replies that cannot be parsed")
    refuse: float = Field(0.0, ge=0, le=1, description="share of replies that refuse")

    @model_validator(mode="before")
    @classmethod
    def _effects_are_numbers(cls, values: dict[str, Any]) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for key, value in values.items():
            judge, option = _split_key(key)
            if key in cls.model_fields:
                options[key] = value
                continue
            if judge:
                options[f"{judge}.{option}".lower()] = cls._of_one_judge(option, value)
                continue
            if near := difflib.get_close_matches(key, cls.model_fields, n=1, cutoff=0.8):
                raise ValueError(f"'{key}' is not an option of a simulated model; did you mean '{near[0]}'?")
            try:
                options[key.lower()] = float(value)
            except ValueError:
                raise ValueError(f"the effect '{key}={value}' is not a number") from None
            if not math.isfinite(options[key.lower()]):
                raise ValueError(f"the effect '{key}={value}' is not a finite number")
        return options

    @classmethod
    def _of_one_judge(cls, option: str, value: Any) -> Any:
        """The value of an option for one judge, validated like the option itself."""
        if option in ClientOptions.model_fields:
            raise ValueError(f"'{option}' is an option of the whole model, not of one judge")
        checked = cls.model_validate({option: value})
        return getattr(checked, option if option in cls.model_fields else option.lower())

    def of_judge(self, persona: str) -> SimOptions:
        """The options of the judge with this description."""
        judge_options: dict[str, Any] = {}
        for key, value in (self.model_extra or {}).items():
            judge, option = _split_key(key)
            if judge and is_named(judge, persona):
                judge_options[option] = value
        return self.model_copy(update=judge_options) if judge_options else self

    def effect(self, label: str) -> float:
        """The points that a label adds."""
        return float((self.model_extra or {}).get(label.strip().lower(), 0.0))

    def labels(self) -> list[str]:
        """The labels that have an effect, on any judge."""
        options = [_split_key(key)[1] for key in self.model_extra or {}]
        return [option for option in options if option not in type(self).model_fields]

    def judges(self) -> list[str]:
        """The judges named in options."""
        return [judge for key in self.model_extra or {} if (judge := _split_key(key)[0])]

    def on_scale(self, highest: float, *, severity: bool = False) -> tuple[float, float]:
        """Mean and standard deviation of a score on a scale up to `highest`.

        Args:
            highest: The end of the scale.
            severity: Whether the score says how bad a text is. Simulated debaters say nothing bad, and RLDF's threshold
                is 3: a mean of 7 would put every statement above it, and no two of them could become a pair.
        """
        usual = 0.3 if severity else 0.7 if highest <= 10 else 0.85
        return highest * usual if self.base is None else self.base, highest / 10 if self.noise is None else self.noise


def _split_key(key: str) -> tuple[str, str]:
    """Split `examiner.female` into judge and option; the judge is empty if the option is for all."""
    judge, dot, option = key.partition(".")
    return (judge, option) if dot and option and judge.isidentifier() else ("", key)


def hint_for(name: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown name: the most similar known name, if there is one."""
    near = difflib.get_close_matches(name, sorted(word.lower() for word in names), n=1, cutoff=0.7)
    return f"; did you mean '{near[0]}'?" if near else ""
