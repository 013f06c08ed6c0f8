"""Separates a model's thinking from its answer, for every client.

    split_thought('<think>Perhaps 1.</think>{"score": 9}')     # ('Perhaps 1.', '{"score": 9}', True)

Servers give the thinking in a field of its own, as a part of the content, or in front of the answer between marks
(`marks.FORMS`). Thinking that is never closed goes to the end: there is no answer. All of it takes linear time.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from autogen_core.models import ChatCompletionTokenLogprob

from parley.agents.models.marks import FORMS, FRAME_END, FRAME_START, STRIPPED_GEMMA, Form
from parley.agents.models.objects import objects_in

THOUGHT_PARTS = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "reasoning_content", "reasoning_text", "summary_text", "thought"}
)
MARK_LENGTH = 60
"""Upper limit on the length of a closing mark."""
MAX_BLANK = 1000
"""After this much white space, a stream is taken to begin with its answer."""
TEXT_PARTS = frozenset({"text", "output_text"})
_THINKERS = re.compile(
    r"(?:\A|[/:_-])(?:o[134](?:-(?:mini|pro|preview|deep).*)?\Z|gpt-[56](?!.*chat)|gpt-oss|deepseek-(?:flash|v[4-9])|r1\b|qwq|magistral)"
    r"|(?<!non-)thinking|reasoner|reasoning|qwen3(?!.*(?:instruct|coder|base|embed|rerank))",
    re.IGNORECASE,
)


def known_to_think(model: str) -> bool:
    """Whether a model thinks by default, by its name; unknown models are noticed when they do (`Reply.thinks`).

    Args:
        model: The name without its provider: `gpt-5-mini`, `Qwen/Qwen3-4B`.
    """
    return _THINKERS.search(model) is not None


class Split(NamedTuple):
    """A text split into the thinking ("" if there is none) and the answer after it."""

    thought: str
    answer: str
    closed: bool = True
    """False if the thinking never ended, so that there is no answer."""


class _Mark(NamedTuple):
    start: int
    end: int
    form: Form
    closes: bool


_NOT_SEEN = "\ufeff\u200b\u200c\u200d\u2060"
_INVISIBLE = "[\\s\ufeff\u200b\u200c\u200d\u2060]*"
_TO_SELF = re.compile(r"(?:assistant\s*)?to=self")
_BEFORE = re.compile(rf"{_INVISIBLE}(?:[^<\n]{{0,40}}[.!:,]{_INVISIBLE}|{_TO_SELF.pattern})?")
"""What may come before the mark that opens a reply: white space, or a few words such as "Sure."."""
MAX_PREFACE = 100
_BETWEEN_WORDS = re.compile(f"[\\s,.:!*{_NOT_SEEN}]+")
_PREFACE = frozenset(
    [
        *("", "sure", "certainly", "ok", "okay", "of", "course", "here", "here's", "here’s", "is", "are", "my", "the"),
        *("requested", "following", "final", "json", "object", "evaluation", "assessment", "verdict", "judgement"),
        *("judgment", "report", "score", "scores", "rating", "ratings", "answer", "reply", "response"),
    ]
)
"""The only words allowed before an object: they cannot change its meaning."""
_SIGNS = "<[◁"
_BY_SIGN = re.compile(
    "|".join(
        f"(?P<{kind}{index}>{pattern})"
        for index, form in enumerate(FORMS)
        for kind, pattern in (("c", form.closes), ("o", form.opens))
    ),
    re.IGNORECASE,
)
_WORDS = ("assistantfinal", "my response:")
_BY_WORD = re.compile("|".join(f"(?P<c{n}>{form.closes})" for n, form in enumerate(FORMS)), re.IGNORECASE)
_UNSIGNED = re.compile(
    "|".join(
        pattern
        for form in FORMS
        for pattern, example in zip((form.opens, form.closes), form.example, strict=True)
        if not set(_SIGNS) & set(example)
    ),
    re.IGNORECASE,
)
"""Patterns of marks that are ordinary words."""
_AFTER_A_SENTENCE = re.compile(r"(?:\A|[\r\n]|[.!?…。])[ \t]*\Z")
_SENTENCE_CONTINUES = re.compile(r"[ \t]+[a-z]|[`'\"”’)\],]")


def split_thought(text: str, *, typed: bool = False, cut: bool = False) -> Split:
    """Split a reply into thinking and answer. The answer follows the last closing mark outside the strings of JSON
    objects.

    In a text without JSON only the marks of the form that opens it count, or closing marks that end a sentence or
    stand on a line of their own, as where the template has opened the thinking: a debater may quote `</think>`.

    Args:
        text: The reply.
        typed: Whether a reply of a type was requested. Then every mark counts, so that no thought becomes a verdict.
        cut: Whether the reply reached its limit of tokens, so that a thought may have no end.
    """
    if text[:1] in _NOT_SEEN:
        text = text.lstrip(_NOT_SEEN)
    if _has_no_mark(text):
        return Split("", text)
    thoughts: list[str] = []
    while (step := _split_once(text, typed, cut)) is not None:
        thoughts.append(step.thought)
        text = step.answer
        if not step.closed:
            return Split(join_thoughts(thoughts), "", closed=False)
    return Split(join_thoughts(thoughts), text)


def _split_once(text: str, typed: bool, cut: bool) -> Split | None:
    """Split once; None if the text has no thought."""
    marks = list(_marks(text))
    if not marks:
        return Split(text, "", closed=False) if STRIPPED_GEMMA.match(text) else None
    objects = objects_in(text)
    starts = [start for start, _ in objects]
    marks = [mark for mark in marks if not _within(mark.start, starts, objects)]
    opened_by = {mark.form.name for mark in marks if not mark.closes}
    marks = [mark for mark in marks if text[mark.start] in _SIGNS or not mark.form.plain or mark.form.name in opened_by]
    first = marks[0] if marks and _BEFORE.fullmatch(text, 0, marks[0].start) else None
    if first is not None and (first.closes or not first.form.plain):
        marks = [mark for mark in marks if mark.form is first.form]  # only the form that opened a thought closes it
    elif not objects and not typed:
        marks = _that_count(text, marks)
    text, marks = _without_empty_end(text, marks)
    last = max((n for n, mark in enumerate(marks) if mark.closes), default=-1)
    opened = any(cut or not mark.form.plain for mark in marks[last + 1 :])  # and never closed
    if not opened and last < 0:
        return None
    thinking = marks if opened else marks[: last + 1]
    borders = [0, *(place for mark in thinking for place in (mark.start, mark.end)), len(text)]
    pieces = [text[borders[n] : borders[n + 1]] for n in range(0, len(borders), 2)]
    if opened:
        return Split(join_thoughts(pieces), "", closed=False)
    answer = _unframed(pieces[-1])
    if not thinking[0].closes and not (is_preface(pieces[0]) or _TO_SELF.fullmatch(pieces[0])):
        return Split(join_thoughts(pieces[1:-1]), f"{pieces[0].strip()}\n{answer}")  # said before the thought
    return Split(join_thoughts(pieces[:-1]), answer)


def is_preface(text: str) -> bool:
    """Whether a text is empty or only announces what follows ("Here is my evaluation:")."""
    return len(text) <= MAX_PREFACE and _PREFACE.issuperset(_BETWEEN_WORDS.split(text.lower()))


def _unframed(answer: str) -> str:
    """Remove the marks that only frame an answer after a thought."""
    while frame := FRAME_START.match(answer):
        answer = answer[frame.end() :]
    while frame := FRAME_END.search(answer, max(0, len(answer.rstrip()) - MARK_LENGTH)):
        answer = answer[: frame.start()].rstrip()
    return answer.lstrip()


def _has_no_mark(text: str) -> bool:
    """True for a text without any sign of a thought, like most replies; takes a third of the time of a search."""
    for sign in _SIGNS:
        place = text.find(sign)
        while place >= 0:
            if not text[place + 1 : place + 2].isdigit():  # no mark begins like a footnote, "[1]"
                return False
            place = text.find(sign, place + 1)
    worded = _WORDS[0] in text or _WORDS[1] in text
    return not (worded or _UNSIGNED.match(text) or STRIPPED_GEMMA.match(text))


def _marks(text: str) -> Iterator[_Mark]:
    """All marks in the text, in order."""
    end = 0
    first = _BY_SIGN.match(text)  # forms whose opening mark is a word are recognised only at the beginning
    if first is not None and text[0] not in _SIGNS:
        yield _as_mark(first)
        end = first.end()
    # Searched one by one: a pattern over the whole text takes fifteen times as long.
    worded = {m.start(): m for m in _BY_WORD.finditer(text)} if _WORDS[0] in text or _WORDS[1] in text else {}
    for place in sorted({*_places(text), *worded}):
        if place >= end and (match := worded.get(place) or _BY_SIGN.match(text, place)):
            yield _as_mark(match)
            end = match.end()


def _places(text: str) -> Iterator[int]:
    """Positions where a mark may begin."""
    for sign in _SIGNS:
        place = text.find(sign)
        while place >= 0:
            yield place
            place = text.find(sign, place + 1)


def _as_mark(match: re.Match[str]) -> _Mark:
    kind = match.lastgroup or ""
    return _Mark(match.start(), match.end(), FORMS[int(kind[1:])], kind[0] == "c")


def _within(place: int, starts: Sequence[int], objects: Sequence[tuple[int, int]]) -> bool:
    """Whether a position is inside one of the objects; a mark there is in a string."""
    before = bisect_right(starts, place) - 1
    return before >= 0 and place < objects[before][1]


def _that_count(text: str, marks: Sequence[_Mark]) -> list[_Mark]:
    """Marks that are not quoted, in a text without JSON that no mark opens."""
    opened = {mark.form.name for mark in marks if not mark.closes}
    return [
        mark
        for mark in marks
        if mark.closes
        and mark.form.name not in opened
        and _AFTER_A_SENTENCE.search(text, max(0, mark.start - 20), mark.start)
        and not _SENTENCE_CONTINUES.match(text, mark.end)
    ]


def _without_empty_end(text: str, marks: list[_Mark]) -> tuple[str, list[_Mark]]:
    """The text without empty thoughts after the answer, as Gemma writes them."""
    while len(marks) > 1 and not marks[-2].closes and marks[-1].closes and not text[marks[-1].end :].strip():
        opening = marks[-2]
        if marks[-1].form is not opening.form or text[opening.end : marks[-1].start].strip() or not opening.start:
            break
        text, marks = text[: opening.start], marks[:-2]
    return text, marks


def opened_by_template(prompt: str) -> str:
    """The mark with which a chat template opens the thinking at the end of a prompt; "" if there is none."""
    end = prompt.rstrip()[-MARK_LENGTH:]
    matches = (_BY_SIGN.match(end, place) for place in sorted(_places(end)))
    opening = (match for match in matches if match and match.end() == len(end) and not _as_mark(match).closes)
    return next((match.group() for match in opening), "")


def join_thoughts(thoughts: Iterable[str | None]) -> str:
    """Several pieces of thinking as one text."""
    return "\n\n".join(piece for thought in thoughts if thought and (piece := thought.strip()))


def read_parts(parts: Sequence[Any]) -> tuple[str, str]:
    """Thinking and text of a content that is a list of typed parts; TypeError if it is not one."""
    thoughts: list[str] = []
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif not isinstance(part, dict):
            raise TypeError(f"a part of the content is a {type(part).__name__}")
        elif (kind := part.get("type", "text")) in TEXT_PARTS:
            texts.append(_words(part.get("text")))
        elif kind in THOUGHT_PARTS:
            thoughts.append(_words(part.get("text") or part.get(kind) or part.get("summary")))
    return join_thoughts(thoughts), "".join(texts)


def _words(value: Any) -> str:
    """The text of a part, which may be a list of parts itself."""
    if isinstance(value, list):
        return "".join(_words(inner.get("text")) if isinstance(inner, dict) else _words(inner) for inner in value)
    if value is not None and not isinstance(value, str):
        raise TypeError(f"a part of the content is a {type(value).__name__}")
    return value or ""


def of_answer(logprobs: list[ChatCompletionTokenLogprob], answer: str) -> list[ChatCompletionTokenLogprob]:
    """Tokens of the answer only, if the thinking's tokens come before it; otherwise all tokens."""
    spelled = "".join(token.token for token in logprobs)
    start = spelled.rfind(answer.rstrip())
    if start <= 0:
        return logprobs
    end = 0
    for index, token in enumerate(logprobs):
        end += len(token.token)
        if end > start:
            whole = end - len(token.token) == start
            # A token across the border keeps its end, without alternatives: they begin with the end of the thinking.
            rest = token.token[start - end :]
            first = token if whole else token.model_copy(update={"token": rest, "top_logprobs": []})
            return [first, *logprobs[index + 1 :]]
    return []


class ThoughtSplitter:
    """Splits a streamed reply for display; the stored text comes from the whole reply.

    A thought is shown to nobody if its opening mark is the first thing to arrive, and ends at its first closing mark.
    A chunk may end within a mark, so its last characters wait for the next chunk.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._form: Form | None = None
        """The form of the thought that is arriving."""
        self._thought = self._answering = False

    def feed(self, chunk: str) -> str:
        """The new text of the answer."""
        if self._answering:
            return chunk
        self._pending += chunk
        while True:
            if self._form is None:
                begin = _INVISIBLES.sub("", self._pending)
                opening = _BY_SIGN.match(begin)
                if opening is not None:
                    mark = _as_mark(opening)
                    self._pending = begin[mark.end :]
                    if mark.closes:  # the template has opened it
                        continue
                    self._form, self._thought = mark.form, True
                elif _may_open(begin) and len(self._pending) < MAX_BLANK:  # not enough to tell
                    return ""
                else:
                    self._answering = True
                    return self._take(begin if self._thought else self._pending)
            closing = _CLOSES[self._form.name].search(self._pending)
            if closing is None:
                self._pending = self._pending[-MARK_LENGTH:]
                return ""
            self._form, self._pending = None, self._pending[closing.end() :]

    def flush(self) -> str:
        """The rest of the answer, at the end of the stream."""
        return "" if self._answering or self._thought else self._take(self._pending)

    def _take(self, text: str) -> str:
        self._pending = ""
        return text


_INVISIBLES = re.compile(rf"\A{_INVISIBLE}")
_CLOSES = {form.name: re.compile(form.closes, re.IGNORECASE) for form in FORMS}
_PART_OF_A_TAG = re.compile(r"<[^<>]{0,200}\Z")


def _may_open(begin: str) -> bool:
    """Whether a text may be the beginning of an opening mark."""
    beginning = begin.lower()
    if begin.startswith("<|"):
        return len(begin) < MARK_LENGTH
    return any(form.example[0].lower().startswith(beginning) for form in FORMS) or bool(_PART_OF_A_TAG.match(begin))
