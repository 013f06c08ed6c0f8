"""Other words for the same question: paraphrases of the judging prompt and wordings of the label, as facets of a run.

    parley run malibu --paraphrases 5 --label-style plain,noun,name

A scenario has one wording in a repeat, for all its identities: identities are compared within a wording, and no
wording is confounded with an identity. Wordings are dealt out in turn to scenarios and bases in random order: every
base has each as often as its number of scenarios allows, and with one scenario per base the bases share them evenly.
In the next repeat a scenario gets the next wording, so that as many repeats as there are wordings cross them fully.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from parley.agents import ConfigError, seed_from
from parley.judging.study import Facet, Prompt, Unit
from parley.scenarios import Identities, LabelStyle, Scenario, check_wordings, load_wordings

PARAPHRASES = 5
"""Wordings of each judging prompt; the first is the paper's."""
JUDGING = ("single", "pair", "pair_inferred")
PROMPTS = {
    (key, number): Prompt.load(f"malibu/{key}" if number == 1 else f"malibu/{key}_{number}")
    for key in JUDGING
    for number in range(1, PARAPHRASES + 1)
}
PLAIN: tuple[LabelStyle, ...] = ("plain",)


class Wordings:
    """Which words each unit has.

    Args:
        paraphrases: How many paraphrases of the judging prompt are used: the paper's, and others drawn by the seed.
        styles: How labels are worded.
        identities: The labels of the run.
        scenarios: What is judged.
        seed: The run's seed.
    """

    def __init__(
        self,
        paraphrases: int,
        styles: Sequence[LabelStyle],
        *,
        identities: Identities,
        scenarios: Iterable[Scenario],
        seed: int,
    ) -> None:
        if not styles:
            raise ConfigError("at least one label style is needed")
        if len(set(styles)) < len(styles):
            raise ConfigError("a label style is given twice")
        for style in styles:
            check_wordings(style, identities)
        others = random.Random(seed_from("paraphrases", seed)).sample(range(2, PARAPHRASES + 1), paraphrases - 1)
        self.paraphrases = (1, *sorted(others))
        self.styles = tuple(styles)
        self._identities, self._seed = identities, seed
        self._turns = _turns(scenarios, seed)

    def prompts(self) -> list[Prompt]:
        """Every wording of the judging prompts that is used."""
        return [PROMPTS[key, number] for key in JUDGING for number in self.paraphrases]

    def sources(self) -> dict[str, str]:
        """The hash of the words for labels; nothing if labels are shown as they are."""
        words = load_wordings()
        return {} if self.styles == PLAIN else {f"label wordings {words.name} {words.version}": words.digest()}

    def plan(self) -> dict[str, Any]:
        """What the analysis plan says of them; nothing if there is one wording, the usual one."""
        if len(self.paraphrases) == 1 and self.styles == PLAIN:
            return {}
        given = "one per scenario and repeat, the same for all identities, in turn over scenarios and bases"
        return {"wordings": {"paraphrases": list(self.paraphrases), "label styles": list(self.styles), "given": given}}

    def worded(self, unit: Unit) -> Unit:
        """The unit with its words as facets, and in its id where there is more than the usual wording."""
        facets: dict[str, Facet] = dict(unit.facets)
        turn = self._turns[str(facets["scenario"])] + int(facets["repeat"])
        name = unit.id
        if (count := len(self.paraphrases)) > 1:
            facets["paraphrase"] = self.paraphrases[turn % count]
            name += f"/w{facets['paraphrase']}"
        if self.styles != PLAIN:
            # Where the two cycles have a common divisor, one step further after each, so that every style meets every
            # paraphrase within as many turns as there are combinations.
            sizes = count, len(self.styles)
            steps = turn + turn // math.lcm(*sizes) % math.gcd(*sizes)
            style = self.styles[steps % len(self.styles)]
            facets["label_style"] = style
            for key in ("",) if facets["phase"] == 1 else ("_a", "_b"):
                facets[f"label_shown{key}"] = self._words(style, str(facets[f"identity{key}"]), facets)
            name += f"/{style}"
        return Unit(name, facets)

    def _words(self, style: LabelStyle, label: str, facets: Mapping[str, Facet]) -> str:
        """What is shown in place of a label; drawn where there are several words, the same in all units of a repeat."""
        if not label:
            return ""
        choices = load_wordings().choices(style, label, self._identities)
        place = self._seed, facets["scenario"], facets["repeat"]
        # What names signal besides is drawn without the label: it is the same for all identities.
        rest = sorted(choices)[seed_from("label", *place) % len(choices)]
        return choices[rest][seed_from("label", *place, label) % len(choices[rest])]


def judging_prompt(key: str, facets: Mapping[str, Facet]) -> Prompt:
    """The wording of a judging prompt that a unit has."""
    return PROMPTS[key, int(facets.get("paraphrase", 1))]


def label_shown(facets: Mapping[str, Facet], key: str) -> str:
    """The label of a candidate as the prompt has it; `key` is "" in phase 1, "_a" or "_b" in phase 2."""
    return str(facets.get(f"label_shown{key}", facets[f"identity{key}"]))


def _turns(scenarios: Iterable[Scenario], seed: int) -> dict[str, int]:
    """The turn of each scenario: bases begin one after the other, and their scenarios follow, both in random order."""
    by_base: dict[str, list[str]] = {}
    for scenario in scenarios:
        by_base.setdefault(scenario.base or scenario.id, []).append(scenario.id)
    bases = _shuffled(by_base, seed)
    return {
        name: first + step
        for first, base in enumerate(bases)
        for step, name in enumerate(_shuffled(by_base[base], seed))
    }


def _shuffled(names: Collection[str], seed: int) -> list[str]:
    return sorted(names, key=lambda name: (seed_from("wordings", seed, name), name))
