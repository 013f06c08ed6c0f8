"""A model's thinking, told apart from its answer: the one place where this is done, for every client.

    split_thought('<think>Perhaps 1.</think>{"score": 9}')     # ('Perhaps 1.', '{"score": 9}')

Servers give the thinking in a field of its own, as a part of the content, or in front of the answer between `<think>`
and `</think>`. What was never closed is thinking to its end: there is no answer. All of it takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from autogen_core.models import ChatCompletionTokenLogprob

OPEN, CLOSE = "<think>", "</think>"
_OPENS = re.compile(rf"\s*{OPEN}")
_LONE_CLOSE = re.compile(rf"(?:\A|\n)[ \t]*{CLOSE}[ \t]*(?:\n|\Z)")
"""Some chat templates write `<think>` into the prompt, so that a reply has only the end. It must be a line of its own:
an answer that quotes the tag within a sentence or a JSON text is not cut there."""
THOUGHT_PARTS = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "reasoning_content", "reasoning_text", "summary_text", "thought"}
)
MAX_BLANK = 1000
"""After so much white space, a stream begins with its answer."""
TEXT_PARTS = frozenset({"text", "output_text"})
_THINKERS = re.compile(
    r"(?:\A|[/:_-])(?:o[134](?:-(?:mini|pro|preview|deep).*)?\Z|gpt-[56](?!.*chat)|gpt-oss|deepseek-(?:flash|v[4-9])|r1\b|qwq|magistral)"
    r"|(?<!non-)thinking|reasoner|reasoning|qwen3(?!.*(?:instruct|coder|base|embed|rerank))",
    re.IGNORECASE,
)


def known_to_think(model: str) -> bool:
    """Whether a model thinks by default, by its name; one that is not known is noticed when it does (`Reply.thinks`).

    Args:
        model: The name without its provider: `gpt-5-mini`, `Qwen/Qwen3-4B`.
    """
    return _THINKERS.search(model) is not None


def split_thought(text: str) -> tuple[str, str]:
    """The thinking at the beginning of a text ("" if there is none), and the answer after it."""
    thoughts: list[str] = []
    start = 0
    while opening := _OPENS.match(text, start):
        end = text.find(CLOSE, opening.end())
        if end < 0:
            return join_thoughts([*thoughts, text[opening.end() :]]), ""
        thoughts.append(text[opening.end() : end])
        start = end + len(CLOSE)
    if thoughts:
        return join_thoughts(thoughts), text[start:].lstrip()
    if CLOSE in text and (closing := _LONE_CLOSE.search(text)) and OPEN not in (head := text[: closing.start()]):
        return head.strip(), text[closing.end() :].lstrip()
    return "", text


def join_thoughts(thoughts: Iterable[str | None]) -> str:
    """Several pieces of thinking as one text."""
    return "\n\n".join(piece for thought in thoughts if thought and (piece := thought.strip()))


def read_parts(parts: Sequence[Any]) -> tuple[str, str]:
    """The thinking and the text of a content that is a list of typed parts; TypeError if it is something else."""
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
    """The tokens of the answer alone, where those of the thinking come before it; all of them if that is not so."""
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
    """Splits a reply that arrives in chunks.

    What is fed may end within a tag, so that up to seven characters wait for the next chunk.
    """

    def __init__(self) -> None:
        self._thoughts: list[str] = []
        self._pending = ""
        self._state = "start"

    def feed(self, chunk: str) -> str:
        """The text of the answer so far that was not given before."""
        if self._state == "answer":
            return chunk
        self._pending += chunk
        while True:
            if self._state == "start":
                begin = self._pending.lstrip()
                if begin.startswith(OPEN):
                    self._state, self._pending = "thinking", begin[len(OPEN) :]
                elif OPEN.startswith(begin) and len(self._pending) < MAX_BLANK:  # not enough to tell
                    return ""
                else:
                    self._state = "answer"
                    return self._take(begin if self._thoughts else self._pending)
            thought, closed, rest = self._pending.partition(CLOSE)
            if not closed:
                kept = _overlap(self._pending, CLOSE)
                self._thoughts.append(self._pending[: len(self._pending) - kept])
                self._pending = self._pending[len(self._pending) - kept :]
                return ""
            self._thoughts += [thought, "\n\n"]
            self._state, self._pending = "start", rest

    def flush(self) -> str:
        """The rest of the answer, at the end of the stream."""
        if self._state == "thinking":
            self._thoughts.append(self._take(self._pending))
            return ""
        return self._take(self._pending) if self._state == "start" and not self._thoughts else ""

    def _take(self, text: str) -> str:
        self._pending = ""
        return text

    @property
    def thought(self) -> str:
        """The thinking so far."""
        return "".join(self._thoughts).strip()


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of the text may be the beginning of the tag."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
