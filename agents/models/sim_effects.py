"""Checks what a simulated model plants against what there is: a label or a judge that nobody has is a typing error.

A simulated model does not know what it takes part in, so the callers that do use `refuse_unknown_effects`:

    sim/judge?femal=+3          there is no label 'femal' in malibu; did you mean 'female'?
    sim/judge?examinr.base=9    nobody in malibu is called 'examinr'; did you mean 'examiner'?
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from parley.agents.models.registry import split_name
from parley.agents.models.sim import SimClient, SimOptions
from parley.agents.models.sim_panel import is_named
from parley.base.errors import ConfigError


def refuse_unknown_effects(
    model: str, labels: Iterable[str], place: str, speakers: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Raise `ConfigError` if a simulated model has an effect for a label or for a judge that there is not.

    Args:
        model: A model's name with its options; only a simulated one has effects.
        labels: The labels that there are, in any case.
        place: Where, for the message: a study's name.
        speakers: The descriptions of those who speak, by name.
    """
    plain, query = split_name(model)
    if not plain.startswith("sim/"):
        return
    options = SimClient.parse_options(plain, query)
    known = {label.strip().lower() for label in labels}
    for label in options.labels():
        if label not in known:
            raise ConfigError(
                f"{plain}: there is no label '{label}' in {place}{_hint(label, known | {*SimOptions.model_fields})}"
            )
    for judge in options.judges():
        if not any(is_named(judge, about) for about in speakers.values()):
            raise ConfigError(f"{plain}: nobody in {place} is called '{judge}'{_hint(judge, speakers)}")


def _hint(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(word.lower() for word in known), n=1, cutoff=0.7)
    return f"; did you mean '{near[0]}'?" if near else ""
