"""Which label wordings a run's identities get, and why they do not get the others.

    choice = LabelChoice.of(load_ballot_wordings(), select(["diet.toml"]))
    choice.labels_for("diet")          # the wordings that fit: "Author: vegan", and with a noun "written by a vegan"
    choice.about("diet")               # lines for people: how many fit, and what the others need

The wordings were written for Parley's ten identities. Nothing is known about a label of the user's own: "62-year-old"
contradicts "aged 33", and nobody says "a nurse reader". So such a label gets the wordings in which any words can stand,
and those whose `needs` its forms meet. None of them says anything else about the author, unless the identities file
allows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from parley.base.errors import ScenarioError
from parley.base.text import plural
from parley.scenarios.ballot_texts import TAG, BallotWordings, LabelWording
from parley.scenarios.identities import CATEGORIES, Identities
from parley.scenarios.templates import PLACEHOLDER, form_key

OWN = "own"
"""Among a wording's categories: every category of the user's own."""
FORMS = ("noun", "adjective", "predicate", "category", "name", TAG)
"""Forms that any file of identities may have, whatever the language of the wordings."""
ON_TOP = ("name", "pronoun")
"""Kinds of label wordings that need names or pronouns."""
EXAMPLES = 3
"""Number of filled wordings that commands show for a category."""


@dataclass(frozen=True, slots=True)
class LabelChoice:
    """The wordings for a run's identities.

    Args:
        wordings: The wordings, with the forms of the user's own labels.
        identities: The labels of the run.
    """

    wordings: BallotWordings
    identities: Identities

    @classmethod
    def of(cls, wordings: BallotWordings, identities: Identities) -> LabelChoice:
        """The choice; ScenarioError if the identities file has a form or a permission that no wording uses.

        Args:
            wordings: The wordings of a file.
            identities: The labels of the run.
        """
        _refuse_unused(wordings, identities)
        own = [label for label in identities if identities.own_parts(label)]
        labels = tuple(label for label in wordings.label if own or label.categories != (OWN,))
        tables: dict[str, Mapping[str, str]] = dict(wordings.identity)
        for part in dict.fromkeys(part for label in own for part in identities.own_parts(label)):
            given = identities.forms.get(part, {})
            if part in tables and not given:  # as the file of wordings says: whoever wrote it knows the label
                continue
            tables[part] = given = {**tables.get(part, {}), **given}
            if wordings.otherwise:
                general = dict(wordings.model_copy(update={"identity": tables}).combined([part]))
                del general["person"]  # "a vegan woman", not "a vegan female person"
                tables[part] = {TAG: " ".join(part.split()), **general, **given}
        complete = wordings.model_copy(update={"identity": tables, "label": labels})
        crossed = {label: identities.parts[label] for label in own if label in identities.parts}
        for label, sides in crossed.items():
            tags = (complete.forms(side).get(TAG) or complete.forms(side)["adjective"] for side in sides)
            tables[label] = {**complete.combined(sides), TAG: ", ".join(tags)}
        return cls(complete.model_copy(update={"identity": tables}), identities)

    def labels_for(self, category: str) -> tuple[LabelWording, ...]:
        """The label wordings that tell all identities of a category apart; ScenarioError if there is none.

        Args:
            category: The category.
        """
        if usable := self.usable_for(category):
            return usable
        compared = ", ".join(self.identities.categories[category])
        raise ScenarioError(f"{self.wordings.name}: no label wording can be used for '{category}' ({compared})")

    def usable_for(self, category: str) -> tuple[LabelWording, ...]:
        """The same, but an empty tuple if there is none.

        Args:
            category: The category.
        """
        wordings, compared = self.wordings, self.identities.categories[category]

        def tells_apart(label: LabelWording) -> bool:
            if self._contradictable(label, category) or self._missing(label, category):
                return False
            if label.kind == "name":
                return all(wordings.names_of(identity, self.identities) for identity in compared)
            return wordings.has_forms(label, compared) and len(
                {wordings.label_text(label, identity) for identity in compared}
            ) == len(compared)

        return tuple(label for label in self._meant_for(category) if tells_apart(label))

    def about(self, category: str) -> list[str]:
        """How many wordings a category of the user's own gets, and what the others need, in lines for people.

        Args:
            category: The category.
        """
        usable = self.usable_for(category)
        # Names and pronouns come on top: few categories have them.
        meant = [label for label in self._meant_for(category) if label in usable or label.kind not in ON_TOP]
        facts = [found for label in meant if (found := self._contradictable(label, category))]
        harmless = (label for label in meant if not self._contradictable(label, category))
        forms = [found for label in harmless if (found := self._missing(label, category))]
        lines = [f"{category}: {len(usable)} of {plural(len(meant), 'label wording')} can be used"]
        if forms:
            labels = self.identities.categories[category]
            # Crossed labels get their forms from the adjectives of their parts.
            form = "adjective" if labels[0] in self.identities.parts else _commonest(forms)
            without = [self.identities.own_parts(label)[0] for label in labels if form not in self._given(label)]
            hint = f': in [forms], write "{without[0]}" = {{{form} = "…"}}' if without else ""
            lines.append(f"{category}: {len(forms)} need forms that not all labels have ({_listed(forms)}){hint}")
        if facts:
            name = next((side for side in category.split("+") if side not in CATEGORIES), category)
            lines.append(
                f"{category}: {len(facts)} say more about the author ({_listed(facts)}): in [allow], write "
                f'{name} = ["…"] with what no label can contradict'
            )
        return lines

    def examples(self, category: str, labels: Sequence[LabelWording] = ()) -> list[str]:
        """A few wordings, filled with the labels of a category in turn, each on one line.

        Args:
            category: The category.
            labels: The wordings to choose from (default: all that can be used).
        """
        labels = labels or self.usable_for(category)
        compared = self.identities.categories[category]
        spread = dict.fromkeys(round(step * (len(labels) - 1) / (EXAMPLES - 1)) for step in range(EXAMPLES))
        shown = []
        for turn, place in enumerate(spread if labels else ()):
            identity = compared[turn % len(compared)]
            names = [name for some in self.wordings.names_of(identity, self.identities).values() for name in some]
            text = self.wordings.label_text(labels[place], identity, name=names[0] if names else "")
            shown.append(text.replace("\n", " / "))
        return shown

    def lines(self, category: str, labels: Sequence[LabelWording] = ()) -> list[str]:
        """What `about` and `examples` say, in lines for people; the arguments are those of `examples`."""
        return [*self.about(category), *(f"{category}, e.g. {text}" for text in self.examples(category, labels))]

    def _meant_for(self, category: str) -> Iterator[LabelWording]:
        names = {category, OWN} if self.identities.is_own(category) else {category}
        return (label for label in self.wordings.label if not label.categories or names & {*label.categories})

    def _contradictable(self, label: LabelWording, category: str) -> Set[str]:
        """What a wording says about the author that the labels of a category could contradict."""
        if self.identities.is_own(category):
            return {*label.states, *label.implies} - self.identities.allowed.get(category, frozenset())
        return {part.strip() for part in category.split("+")} & {*label.states}

    def _missing(self, label: LabelWording, category: str) -> Set[str]:
        """The forms that a wording needs and that not all labels of a category have."""
        compared = [
            identity for identity in self.identities.categories[category] if TAG in self.wordings.forms(identity)
        ]
        return {need for need in label.needs if not all(need in self._given(identity) for identity in compared)}

    def _given(self, identity: str) -> Set[str]:
        """The forms that the identities file gives for a label of the user's own, or from which they can be made."""
        given = [self.identities.forms.get(part, {}) for part in self.identities.own_parts(identity)]
        # "a vegan reader", "a vegan person" and "a vegan woman" can be made; for the other forms there is no rule.
        made = {"adjective", "noun"} if all("adjective" in forms for forms in given) else set()
        return made if identity in self.identities.parts else made | given[0].keys()


def _refuse_unused(wordings: BallotWordings, identities: Identities) -> None:
    """Refuse a misspelt form or permission, which would leave wordings out without a word."""
    used = {form_key(key) for label in wordings.label for key in (*PLACEHOLDER.findall(label.text), *label.needs)}
    used = (used | {*FORMS}) - {"a", "answer"}
    for label, forms in identities.forms.items():
        if unused := sorted(forms.keys() - used):
            raise ScenarioError(
                f"[forms] '{label}': no wording of {wordings.name} uses '{unused[0]}' "
                f"(known: {', '.join(sorted(used))})"
            )
    stated = {fact for label in wordings.label for fact in (*label.states, *label.implies)}
    for category, allowed in identities.allowed.items():
        if unused := sorted(allowed - stated):
            raise ScenarioError(
                f"[allow] '{category}': no wording of {wordings.name} states '{unused[0]}' "
                f"(known: {', '.join(sorted(stated))})"
            )


def _listed(sets: Iterable[Set[str]]) -> str:
    return ", ".join(sorted(set().union(*sets)))


def _commonest(sets: Iterable[Set[str]]) -> str:
    return Counter(sorted(item for found in sets for item in found)).most_common(1)[0][0]
