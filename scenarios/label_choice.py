"""Chooses label wordings for a run's identities, and says why others do not fit.

    choice = LabelChoice.of(load_ballot_wordings(), select(["diet.toml"]))
    choice.labels_for("diet")          # the wordings that fit: "Author: vegan", and with a noun "written by a vegan"
    choice.about("diet")               # lines for people: how many fit, and what the others need

The wordings were written for Parley's ten identities. Parley knows nothing about a user's label: "62-year-old"
contradicts "aged 33", and nobody says "a nurse reader". Such a label therefore gets the wordings that fit any label,
and those whose `needs` its forms meet. These state nothing else about the author, unless the identities file allows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from parley.base.errors import ScenarioError
from parley.base.text import plural
from parley.base.toml import toml_key
from parley.scenarios.ballot_texts import TAG, BallotWordings, LabelWording
from parley.scenarios.identities import CATEGORIES, Identities
from parley.scenarios.templates import PLACEHOLDER, form_key

OWN = "own"
"""Marks, among a wording's categories, all categories that the user defined."""
SENTENCES = ("noun", "adjective", "predicate", "category")
"""Forms that most labels have, most common first."""
FORMS = (*SENTENCES, TAG)
"""Forms that any file of identities may have, in any language."""
EXAMPLES = 3
"""Number of filled wordings that commands show for a category."""


@dataclass(frozen=True, slots=True)
class LabelChoice:
    """The wordings for a run's identities.

    Args:
        wordings: The wordings, with the forms of the user's labels.
        identities: The labels of the run.
    """

    wordings: BallotWordings
    identities: Identities

    @classmethod
    def of(cls, wordings: BallotWordings, identities: Identities) -> LabelChoice:
        """Make the choice; ScenarioError if no wording could use something in the identities file.

        Args:
            wordings: The wordings of a file.
            identities: The labels of the run.
        """
        if wrong := [f"[{table}] '{key}': {problem}" for (table, key), problem in misfits(wordings, identities)]:
            raise ScenarioError("; ".join(wrong))
        user_labels = [label for label in identities if identities.own_parts(label)]
        labels = tuple(label for label in wordings.label if user_labels or label.categories != (OWN,))
        tables: dict[str, Mapping[str, str]] = dict(wordings.identity)
        for part in dict.fromkeys(part for label in user_labels for part in identities.own_parts(label)):
            given = identities.forms.get(part, {})
            if part in tables and not given:  # as in the file of wordings, whose author knows the label
                continue
            tables[part] = given = {**tables.get(part, {}), **given}
            if wordings.otherwise:
                general = dict(wordings.model_copy(update={"identity": tables}).combined([part]))
                del general["person"]  # "a vegan woman", not "a vegan female person"
                tables[part] = {TAG: " ".join(part.split()), **general, **given}
        complete = wordings.model_copy(update={"identity": tables, "label": labels})
        crossed = {label: identities.parts[label] for label in user_labels if label in identities.parts}
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
        fitting = (
            label
            for label in self._meant_for(category)
            if not self._contradictable(label, category) and not self._missing(label, category)
        )
        return tuple(label for label in fitting if self._tells_apart(label, category))

    def about(self, category: str) -> list[str]:
        """Lines that say how many wordings a user's category gets, and what the others need.

        Args:
            category: The category.
        """
        labels, usable = self.identities.categories[category], self.usable_for(category)
        meant = list(self._meant_for(category))
        forms: list[Set[str]] = []  # forms lacking in each wording that states nothing else
        facts: list[Set[str]] = []  # other facts that each wording states
        fitting: list[Set[str]] = []  # the same for wordings that could be used if these were allowed
        for label in meant:
            missing = self._missing(label, category)
            if more := self._contradictable(label, category):
                facts.append(more)
                fitting += [] if missing or not self._tells_apart(label, category) else [more]
            elif missing:
                forms.append(missing)
        lines = [f"{category}: {len(usable)} of {plural(len(meant), 'label wording')} can be used"]
        if forms:
            # Crossed labels get their forms from the adjectives of their parts.
            possible_forms = {"adjective"} if labels[0] in self.identities.parts else set().union(*forms)
            gains = {form: sum(missing <= _made_from(form) for missing in forms) for form in possible_forms}
            made = any("noun" in missing for missing in forms)
            (form, most), *others = sorted(gains.items(), key=lambda item: (-item[1], item[0]))
            remark = " (nouns are made from it)" if made and form == "adjective" else ""
            lines.append(
                f"{category}: adding `{form}` to every label unlocks {plural(most, 'wording')}{remark}"
                f"{''.join(f', `{form}` {count}' for form, count in others)}{self._form_hint(category, forms)}"
            )
        lines += self._uneven(category)
        if facts:
            name = next((side for side in category.split("+") if side not in CATEGORIES), category)
            gains = {fact: n for fact in set().union(*fitting) if (n := sum(more == {fact} for more in fitting))}
            left = len(facts) - len(fitting)
            rest = f"; the other {left} also lack a form or would read the same" * (left > 0)
            lines.append(
                f"{category}: {len(facts)} are left out because they also state a fact about the author, which a label "
                f'might contradict. If none of yours can, admit them: below [allow], write {toml_key(name)} = ["…"] '
                f"with these facts ({_gains(gains)}; all: +{len(fitting)}{rest})"
            )
        if alike := len(meant) - len(usable) - len(facts) - len(forms):
            lines.append(f"{category}: {alike} would read the same for two labels")
        return lines

    def _form_hint(self, category: str, missing: Sequence[Set[str]]) -> str:
        """A hint what to write in the file of identities for one more form; empty if there is none.

        Args:
            category: The category.
            missing: The forms that each wording lacks.
        """
        labels = self.identities.categories[category]
        if labels[0] in self.identities.parts:
            form = "adjective"
        else:
            form = max(SENTENCES, key=lambda form: sum(lacking == {form} for lacking in missing))
        label = next((self.identities.own_parts(label)[0] for label in labels if form not in self._given(label)), None)
        if label is None:
            return ""
        if label in self.identities.forms:
            return f'; in [forms], add {form} = "…" to {toml_key(label)}'
        return f'; in [forms], write {toml_key(label)} = {{{form} = "…"}}'

    def _uneven(self, category: str) -> Iterator[str]:
        """Lines about forms that only some labels of a category have."""
        labels = self.identities.categories[category]
        if labels[0] in self.identities.parts:
            return
        given = {label: self._given(label) for label in labels if TAG in self.wordings.forms(label)}
        for form in sorted(set().union(*given.values())):
            if without := [label for label, forms in given.items() if form not in forms]:
                having = ", ".join(label for label in given if label not in without)
                yield (
                    f"{category}: {form} is given for {having}, not for {', '.join(without)}: a wording is only used "
                    "if all labels have its form, so that they are compared in the same words"
                )

    def examples(self, category: str, labels: Sequence[LabelWording] = ()) -> list[str]:
        """Lines with a few wordings, filled in with the labels of a category in turn.

        Args:
            category: The category.
            labels: The wordings to choose from (default: all usable ones).
        """
        labels = labels or self.usable_for(category)
        compared = self.identities.categories[category]
        spread = dict.fromkeys(round(step * (len(labels) - 1) / (EXAMPLES - 1)) for step in range(EXAMPLES))
        shown = []
        for turn, place in enumerate(spread if labels else ()):
            text = self.wordings.label_text(labels[place], compared[turn % len(compared)])
            shown.append(text.replace("\n", " / "))
        return shown

    def lines(self, category: str, labels: Sequence[LabelWording] = ()) -> list[str]:
        """The lines of `about` and `examples`; takes the arguments of `examples`."""
        return [*self.about(category), *(f"{category}, e.g. {text}" for text in self.examples(category, labels))]

    def _meant_for(self, category: str) -> Iterator[LabelWording]:
        names = {category, OWN} if self.identities.is_own(category) else {category}
        return (label for label in self.wordings.label if not label.categories or names & {*label.categories})

    def _contradictable(self, label: LabelWording, category: str) -> Set[str]:
        """Facts about the author in a wording that the labels of a category could contradict."""
        if self.identities.is_own(category):
            return {*label.states, *label.implies} - self.identities.allowed.get(category, frozenset())
        return {part.strip() for part in category.split("+")} & {*label.states}

    def _missing(self, label: LabelWording, category: str) -> Set[str]:
        """Forms that a wording needs but that some labels of a category lack."""
        shown = {form_key(key) for key in PLACEHOLDER.findall(label.text)} - {"answer", "a"}
        missing: set[str] = set()
        for identity in self.identities.categories[category]:
            forms = self.wordings.forms(identity)
            missing |= shown - forms.keys()
            if TAG in forms:
                missing |= {*label.needs} - self._given(identity)
        return missing

    def _tells_apart(self, label: LabelWording, category: str) -> bool:
        """Whether a wording reads differently for each label of a category."""
        compared = self.identities.categories[category]
        return len({self.wordings.label_text(label, identity) for identity in compared}) == len(compared)

    def _given(self, identity: str) -> Set[str]:
        """The forms that the identities file gives for a user's label, or from which they can be made."""
        given = [self.identities.forms.get(part, {}) for part in self.identities.own_parts(identity)]
        # "a vegan reader", "a vegan person" and "a vegan woman" can be made; for the other forms there is no rule.
        made = _made_from("adjective") if all("adjective" in forms for forms in given) else set()
        return made if identity in self.identities.parts else made | given[0].keys()


def misfits(wordings: BallotWordings, identities: Identities) -> Iterator[tuple[tuple[str, str], str]]:
    """Entries of a file of identities that no wording could use: table and key, and the problem.

    A misspelt form or permission would silently leave wordings out. Labels that differ in the word for their
    category would differ in two things.

    Args:
        wordings: The wordings.
        identities: The labels of the file.
    """
    used = {form_key(key) for label in wordings.label for key in (*PLACEHOLDER.findall(label.text), *label.needs)}
    used = (used | {*FORMS}) - {"a", "answer"}
    for label, forms in identities.forms.items():
        for form in sorted(forms.keys() - used):
            yield ("forms", label), f"no wording of {wordings.name} uses '{form}' (known: {', '.join(sorted(used))})"
    for labels in identities.categories.values():
        words = {
            label: identities.forms[label]["category"]
            for label in labels
            if "category" in identities.forms.get(label, {})
        }
        if len({*words.values()}) > 1:
            listed = ", ".join(f"'{word}' for {label}" for label, word in words.items())
            yield (
                ("forms", [*words][-1]),
                f"'category' must be the same word for all labels of a category, got {listed}",
            )
    stated = {fact for label in wordings.label for fact in (*label.states, *label.implies)}
    for category, allowed in identities.allowed.items():
        for fact in sorted(allowed - stated):
            yield (
                ("allow", category),
                f"no wording of {wordings.name} states '{fact}' (known: {', '.join(sorted(stated))})",
            )


def _made_from(form: str) -> Set[str]:
    """The forms that a label has once it has this one."""
    return {"adjective", "noun"} if form == "adjective" else {form}


def _gains(gains: Mapping[str, int]) -> str:
    """Number of wordings that each permission adds by itself, largest first."""
    most_first = sorted(gains.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{key}: +{count}" for key, count in most_first)
