"""Prompts of silent ballots: how they label the answer's author, and how they ask.

    wordings = load_ballot_wordings()                      # from parley.scenarios.ballot_wordings
    label = wordings.label_by_id("beside-written-by")      # how labels are chosen: parley.scenarios.label_choice
    wordings.single(situation=…, answer=…, label=label, identity="female", question=wordings.question[0], low=1, high=9)

The file has the whole prompt except for the suite's texts, so that a suite in another language needs no English. Its
tables have the forms of identities ("female", "a woman"); each key is a placeholder of labels. A label without a table,
such as a user's own or a crossed one, gets its forms from the table `[otherwise]`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from pydantic import BaseModel, Field

from parley.base.errors import ScenarioError, UnknownName
from parley.scenarios.malibu import Header, Id, LabelKind, Place
from parley.scenarios.templates import PLACEHOLDER, fill, form_key


class QuestionWording(BaseModel, extra="forbid", frozen=True):
    """One way to ask for a score or a preference.

    Args:
        id: A short name, unique among the questions.
        single: The question about one answer.
        metric: The question about one metric of a rubric.
        pair: The question of which answer is better.
        pair_ties: The same where a tie is allowed.
    """

    id: Id
    single: str
    metric: str
    pair: str
    pair_ties: str


class LabelWording(BaseModel, extra="forbid", frozen=True):
    """One way to name the answer's author.

    Args:
        id: A short name, unique among the labels.
        kind: The kind of label, such as a byline.
        place: Where it stands: `beside` is the answer's heading, `before` a paragraph above it, `after` one below the
            answer.
        text: The words, with placeholders.
        categories: The categories of identities it is used in; empty for all, "own" for those of the user's own.
        states: Other facts that it states about the author, such as "age": it is not used in a category of this name.
        implies: Facts that it assumes about the author, such as "work". A user's label could contradict these and the
            stated facts, so both must be allowed in the file of identities.
        needs: The forms that a user's label must have: "noun" for "by a vegan", "adjective" for "a vegan
            reader", "predicate" for "is vegan", "category" for "diet: vegan". Empty if it fits any label.
    """

    id: Id
    kind: LabelKind
    place: Place
    text: str
    categories: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    implies: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


TAG = "tag"
"""The form of a user's label in wordings that fit any label: "Author: vegan"."""
_Row = TypeVar("_Row", QuestionWording, LabelWording)


class PromptParts(BaseModel, extra="forbid", frozen=True):
    """The parts of a silent prompt besides the suite's texts, the label and the question.

    Args:
        judge: The neutral judge's system message.
        answer: The heading of an answer; `answer_a` and `answer_b` are those of a pair.
        heading: The heading's line where it has no label.
        single: The prompt about one answer.
        pair: The prompt about two.
        prefill: The beginning of the reply, if the server can continue a given text.
        prefill_pair: The same for a pair.
        tie: A judge's reply for a tie.
    """

    judge: str
    answer: str
    answer_a: str
    answer_b: str
    heading: str = "{answer}:"
    single: str
    pair: str
    prefill: str = ""
    prefill_pair: str = ""
    tie: str = "T"


class ReplyWords(BaseModel, extra="forbid", frozen=True):
    """Placeholders for values in the reply format of a debate. Its keys are the same in every language.

    Args:
        reasons: In place of the reasons for a score.
        comparison: In place of the reasons for a preference.
        score: In place of a score.
        choice: In place of the preferred answer.
        choice_ties: The same where a tie is allowed; the reply's word for it is "tie".
    """

    reasons: str = "your reasons, in one or two sentences"
    comparison: str = "strengths, weaknesses, and why"
    score: str = "score"
    choice: str = "A or B"
    choice_ties: str = "A, B or tie"


class TalkParts(ReplyWords, extra="forbid", frozen=True):
    """The questions of a debate, which asks for JSON that begins with reasons.

    Args:
        first: The first ballot on one answer.
        discuss: The discussion of one answer.
        first_pair: The first ballot on two answers.
        discuss_pair: The discussion of two.
    """

    first: str
    discuss: str
    first_pair: str
    discuss_pair: str


class BallotWordings(Header, extra="forbid", frozen=True):
    """The words of silent ballots, in one language.

    Args:
        prompt: The parts of a prompt besides suite, label and question.
        talk: The questions of a debate.
        identity: The forms of each identity.
        otherwise: The forms of other labels, from {label}; for crossed ones from {modifier} and {person} too, joined
            with the `separator` (default: a space).
        question: The question wordings.
        label: The label wordings.
        placebo: Those of placebo labels, whose {adjective} is the weekday.
    """

    prompt: PromptParts
    talk: TalkParts
    identity: dict[str, dict[str, str]] = Field({})
    otherwise: dict[str, str] = Field({})
    question: tuple[QuestionWording, ...] = Field(min_length=1)
    label: tuple[LabelWording, ...] = Field(min_length=1)
    placebo: tuple[LabelWording, ...] = ()

    def digest(self) -> str:
        """The SHA-256 hash of all texts that may be shown; runs with placebo labels have their wordings in `label`."""
        never_shown = {"label": {"__all__": {"implies", "needs"}}}
        shown = self.model_dump_json(exclude={"about": True, "placebo": True, **never_shown})
        return hashlib.sha256(shown.encode()).hexdigest()

    def label_by_id(self, label_id: str) -> LabelWording:
        """The label wording with this id."""
        return _by_id(self.label, label_id, f"label wording in {self.name}")

    def question_by_id(self, question_id: str) -> QuestionWording:
        """The question wording with this id."""
        return _by_id(self.question, question_id, f"question wording in {self.name}")

    def single(
        self,
        *,
        situation: str,
        answer: str,
        label: LabelWording | None,
        identity: str,
        question: QuestionWording | str,
        low: int,
        high: int,
        metric: tuple[str, str] | None = None,
    ) -> str:
        """The user prompt about one answer.

        Args:
            situation: The scenario's text.
            answer: The answer to score.
            label: The wording that names the answer's author; None for no label.
            identity: The identity's label; empty for no label.
            question: The wording of the question, or a finished text to end with, as from `talk_part`.
            low: The scale's lowest number.
            high: The scale's highest number.
            metric: Name and definition of the metric to score (default: the answer as a whole).
        """
        question_text = question
        if isinstance(question, QuestionWording):
            values = {"low": str(low), "high": str(high)}
            if metric:
                values |= {"metric": metric[0], "definition": metric[1]}
            question_text = fill(question.metric if metric else question.single, values)
        shown = self.shown(answer, self.prompt.answer, label, identity)
        return fill(self.prompt.single, {"situation": situation, "answer": shown, "question": str(question_text)})

    def pair(
        self,
        *,
        situation: str,
        answers: tuple[str, str],
        label: LabelWording | None,
        identities: tuple[str, str],
        question: QuestionWording | str,
        ties: bool = False,
    ) -> str:
        """The user prompt about two answers.

        Args:
            situation: The scenario's text.
            answers: The answers A and B.
            label: The wording that names the answers' authors; None for no label.
            identities: The identities' labels; empty for no label.
            question: The wording of the question, or a finished text to end with, as from `talk_part`.
            ties: Whether a tie is allowed.
        """
        question_text = question
        if isinstance(question, QuestionWording):
            question_text = fill(question.pair_ties if ties else question.pair, {"tie": self.prompt.tie})
        headings = (self.prompt.answer_a, self.prompt.answer_b)
        shown = [
            self.shown(answer, heading, label, identity)
            for answer, heading, identity in zip(answers, headings, identities, strict=True)
        ]
        values = {"situation": situation, "answer_a": shown[0], "answer_b": shown[1], "question": str(question_text)}
        return fill(self.prompt.pair, values)

    def talk_part(
        self,
        part: Literal["first", "discuss", "first_pair", "discuss_pair"],
        *,
        format: str,
        low: int,
        high: int,
        metrics: str = "",
    ) -> str:
        """What a debate asks for.

        Args:
            part: The ballot.
            format: The JSON format of the reply.
            low: The scale's lowest number.
            high: The scale's highest number.
            metrics: The metrics with their definitions, if there are several; its line is left out if empty.
        """
        text = getattr(self.talk, part).strip()
        text = text if metrics else text.replace("{metrics}\n", "")
        return fill(text, {"format": format, "low": str(low), "high": str(high), "metrics": metrics})

    def shown(self, answer: str, heading: str, label: LabelWording | None, identity: str) -> str:
        """An answer under its heading, with the label before, beside or after it.

        Args:
            answer: The answer's text.
            heading: The heading's text: "Answer A".
            label: The label's wording; None for no label.
            identity: The identity's label; empty for no label.
        """
        plain = f"{fill(self.prompt.heading, {'answer': heading})}\n{answer}"
        if label is None or not identity:
            return plain
        words = self.label_text(label, identity, heading=heading)
        if label.place == "beside":
            return f"{words}\n{answer}"
        # An empty line, so that a label below the answer is not read as its last line.
        return f"{words}\n{plain}" if label.place == "before" else f"{plain}\n\n{words}"

    def label_text(self, label: LabelWording, identity: str, *, heading: str = "") -> str:
        """The words of a label for an identity.

        Args:
            label: The label's wording.
            identity: The identity's label.
            heading: The answer's heading (default: that of a single answer).
        """
        values = {**self.forms(identity), "answer": heading or self.prompt.answer}
        if TAG in values:  # a user's label: English needs "24 years old" after "is", and "24-year-old" before a noun
            form = next((need for need in label.needs if need in ("adjective", "predicate")), TAG)
            values["adjective"] = values.get(form, values[TAG])
        try:
            return fill(label.text, values)
        except KeyError as error:
            raise ScenarioError(
                f"{self.name}: label '{label.id}' needs the form '{error.args[0]}' of '{identity}': "
                f"add it to [identity.{identity}] or to [otherwise]"
            ) from None

    def forms(self, identity: str) -> Mapping[str, str]:
        """The forms of an identity, from its table; for a user's or a crossed label, from `[otherwise]`.

        Args:
            identity: The label: "female", "black female", "20-year-old".
        """
        if identity in self.identity:
            return self.identity[identity]
        if not self.otherwise:
            raise ScenarioError(f"{self.name}: has no forms of '{identity}': add a table [identity.{identity}]")
        return self.combined(identity.split())

    def combined(self, parts: Sequence[str]) -> Mapping[str, str]:
        """The forms of a label without a table, or of a crossed one, made from its parts and `[otherwise]`.

        Args:
            parts: The labels or words that it consists of.
        """
        tables = [self.identity.get(part, {}) for part in parts]
        adjectives = [self.identity.get(part, {}).get("adjective", part) for part in parts]
        crossed = len(tables) > 1 and all(tables)
        separator = self.otherwise.get("separator", " ") if crossed else " "
        values = {"label": separator.join(adjectives), "person": self.otherwise.get("person", "")}
        values["modifier"] = values["label"]
        heads = [number for number, table in enumerate(tables) if "person" in table]
        inherited: Mapping[str, str] = {}
        if crossed and len(heads) == 1:  # "a Black woman": the noun of one part after the adjectives of the others
            inherited = tables[heads[0]]
            values["person"] = inherited["person"]
            values["modifier"] = separator.join(word for part, word in enumerate(adjectives) if part != heads[0])
        worded = {key: fill(text, values) for key, text in self.otherwise.items() if key not in ("person", "separator")}
        return {**inherited, **worded, "person": values["person"]}

    def has_forms(self, label: LabelWording, compared: Iterable[str]) -> bool:
        """Whether these identities have all the forms that a label needs.

        Args:
            label: The label's wording.
            compared: The identities' labels.
        """
        needed = {form_key(key) for key in PLACEHOLDER.findall(label.text)} - {"answer", "a"}
        return not any(needed - self.forms(identity).keys() for identity in compared)


def _by_id(rows: Sequence[_Row], wanted: str, what: str) -> _Row:
    for row in rows:
        if row.id == wanted:
            return row
    raise UnknownName(f"there is no {what} called '{wanted}'")
