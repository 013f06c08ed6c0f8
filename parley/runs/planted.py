"""What a study's simulated models plant, checked against the study before it runs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from parley.agents.models.sim import refuse_unknown_effects
from parley.judging import Study
from parley.scenarios.identities import ALL as IDENTITIES

_WORD = re.compile(r"[^\W_][\w-]*")


def refuse_unknown_labels(study: Study) -> None:
    """Raise `ConfigError` if a simulated model has an effect for a label or a judge that the study does not have.

    A label is a facet of a unit (an identity), a word of the prompts (a metric, a role), or an identity that other runs
    of the study may have.
    """
    simulated = [name for name in study.models() if name.startswith("sim/") and "?" in name]
    if not simulated:
        return
    prompts = study.prompts()
    labels = {*IDENTITIES, *(str(value) for unit in study.plan() for value in unit.facets.values())}
    labels |= {word.lower() for pair in prompts.items() for text in pair for word in _WORD.findall(text)}
    speakers = _speakers(prompts)
    for name in simulated:
        refuse_unknown_effects(name, labels, study.name, speakers)


def _speakers(prompts: Mapping[str, str]) -> Mapping[str, str]:
    """The personas among the prompts; all prompts if none is named as a persona."""
    personas = {name.removeprefix("persona/"): text for name, text in prompts.items() if name.startswith("persona/")}
    return personas or prompts
