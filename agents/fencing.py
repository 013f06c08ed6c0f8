"""Fences mark untrusted text in a prompt as quoted, so that a model does not take it for instructions.

Two markers surround the text. They carry a hash of it, so that no text can contain its own closing marker. Every line
is quoted, control and invisible characters are removed, the length is limited, and special tokens of chat templates
are broken up. This does not make a model immune. Texts that read like an instruction to a model are flagged for people
and audits (`instruction_kinds`), never in a prompt: a judge who reads a warning gives another score.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

MAX_CHARS = 6000
READ_FACTOR = 20
"""Cleaning reads at most this multiple of the maximum length, which bounds the time spent on a very long text."""
LABEL_CHARS = 300
JUDGED_CHARS = 100_000
"""Maximum length of a judged text, far beyond any real one: a text that is cut cannot be judged."""

# Characters whose NFKC form is the bracket count as the bracket: some servers and tokenizers normalise.
_OPEN, _CLOSE, _BAR, _SLASH = "<＜﹤", ">＞﹥", "|｜", "/／"
_SQUARE_OPEN, _SQUARE_CLOSE = r"\[［﹇", r"\]］﹈"
_ANGLE = re.compile(rf"[{_OPEN}](?=[{_OPEN}{_BAR}{_SLASH}]|[^\s{_OPEN}{_CLOSE}]+[{_CLOSE}])")
_ANGLE_END = re.compile(rf"(?<=[{_BAR}{_CLOSE}])[{_CLOSE}]")
_SQUARE = re.compile(rf"([{_SQUARE_OPEN}])([{_BAR}]|[^\s{_SQUARE_OPEN}{_SQUARE_CLOSE}]+(?=[{_SQUARE_CLOSE}]))")
_SQUARE_NAME = re.compile(r"\|.*|/[\w-]+|[\w-]*[A-Z]{2}[\w-]*|(?i:inst)|unused\d+")
"""Names in brackets that are special tokens: `[INST]`, `[/INST]`, `[gMASK]`, `[|user|]`; not `[1]`, `[here](url)`,
`[A]`.
"""

_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Default_Ignorable_Code_Point of Unicode 14.0 (DerivedCoreProperties.txt): variation selectors, fillers, joiners.
`unicodedata` does not have this property, and some of these characters are letters or marks by category."""


def clean(text: str, max_chars: int) -> str:
    """The visible characters only, without blank lines or runs of spaces, shortened to `max_chars`."""
    text = text[: max_chars * READ_FACTOR]
    text = _LINE_ENDS.sub("\n", text)
    lines = (" ".join(line.split()) for line in text.translate(_VISIBLE).split("\n"))
    cleaned = "\n".join(line for line in lines if line)
    return cleaned if len(cleaned) <= max_chars else cleaned[: max_chars - 1].rstrip() + "…"


def is_invisible(character: str) -> bool:
    """Whether a character is a control, format, private or unassigned one, or one that Unicode lets programs ignore."""
    # Without these, an instruction that was hidden by zero-width characters can be read: that is the fence's purpose,
    # though such an attempt may look worse with a fence than without.
    return unicodedata.category(character)[0] == "C" or _IGNORABLE.match(character) is not None


class _VisibleOnly(dict[int, int | None]):
    """For `str.translate`: leaves invisible characters out. Entries are added as characters are met."""

    def __missing__(self, code: int) -> int | None:
        kept = code if chr(code) in "\n\t" or not is_invisible(chr(code)) else None
        if len(self) < 10_000:
            self[code] = kept
        return kept


_VISIBLE = _VisibleOnly()
_LINE_ENDS = re.compile(r"[\r\n\v\f\x85\u2028\u2029]+")


class _Pattern(NamedTuple):
    """A pattern of `fencing.toml`, for texts in lower case."""

    exact: re.Pattern[str]
    quick: re.Pattern[str]
    """The pattern without its leading word boundary: `re` can then skip to the first letter, which takes a fifth of the
    time."""

    def is_in(self, text: str) -> bool:
        return self.quick.search(text) is not None and self.exact.search(text) is not None


@lru_cache(maxsize=1)
def _patterns() -> dict[str, list[_Pattern]]:
    # Written for web pages, and not tuned on attempts to steer a judge.
    table = tomllib.loads(files("parley.agents").joinpath("fencing.toml").read_text("utf-8"))
    return {
        kind: [
            _Pattern(re.compile(pattern, re.DOTALL), re.compile(pattern.removeprefix(r"\b"), re.DOTALL))
            for pattern in patterns
        ]
        for kind, patterns in table.items()
    }


def instruction_kinds(text: str) -> tuple[str, ...]:
    """The kinds of instruction to a model in a text, by `fencing.toml`. Full-width and styled letters count."""
    plain = unicodedata.normalize("NFKC", clean(text, len(text) + 1)).replace("İ", "i").replace("ı", "i").lower()
    return tuple(kind for kind, patterns in _patterns().items() if any(pattern.is_in(plain) for pattern in patterns))


def break_tokens(text: str) -> str:
    """The text with a space in every special token of a chat template: servers interpret those anywhere, even quoted.

    `<word>`, `</word>`, `<|…|>`, `[UPPER_CASE]` and the like are broken, even if no known template uses
    them: a list of known tokens is out of date with each new model, and one more space costs a reader nothing. Clean
    the text first: an invisible character in a token would keep it from being found.
    """
    text = _ANGLE.sub(r"\g<0> ", text)
    text = _ANGLE_END.sub(r" \g<0>", text)
    return _SQUARE.sub(_break_square, text)


def _break_square(match: re.Match[str]) -> str:
    opening, name = match.groups()
    return f"{opening} {name}" if _SQUARE_NAME.fullmatch(unicodedata.normalize("NFKC", name)) else match[0]


def fence(text: str, label: str, max_chars: int = MAX_CHARS) -> str:
    """Quote a text line by line between two markers.

    Args:
        text: Untrusted text: a summary of search results, a response to be judged, another agent's turn.
        label: A description of the text for the model, in the opening marker.
        max_chars: Longer texts are cut. The default has room for a long reply and still fits a small context.
    """
    return between_fences(_quoted(text, max_chars), label)


@lru_cache(maxsize=128)  # judges and identities read the same text
def _quoted(text: str, max_chars: int) -> str:
    """The text line by line, without the markers."""
    return "\n".join(f"> {line}" for line in break_tokens(clean(text, max_chars)).split("\n"))


def fence_judged(text: str, label: str) -> str:
    """A text as a judge reads it: quoted between two markers, and not cut.

    Args:
        text: The text to judge.
        label: A description of the text for the model: "DRAFT", "STATEMENT OF Ann".
    """
    return fence(text, label, JUDGED_CHARS)


_MARKER = re.compile(r"<<<([0-9a-f]{16}) [^\n]*\n|^([0-9a-f]{16})>>>", re.MULTILINE)


def fenced_texts(prompt: str) -> list[str]:
    """The fenced texts in a prompt, without their marks."""
    opened: dict[str, int] = {}
    texts = []
    # One pass over the markers: a search for each opening's end takes quadratic time on a text full of openings.
    for marker in _MARKER.finditer(prompt):
        opening, closing = marker.groups()
        if opening:
            opened[opening] = marker.end()
        elif closing in opened:
            lines = prompt[opened.pop(closing) : marker.start()].split("\n")
            texts.append("\n".join(line[2:] for line in lines if line.startswith("> ")))
    return texts


def one_line(text: str, max_chars: int) -> str:
    """A cleaned text on one line."""
    return clean(text, max_chars).replace("\n", " ")


def between_fences(body: str, label: str) -> str:
    """The body between its two markers, which carry its hash. The label, perhaps with a query, is cleaned too."""
    label = _safe_label(label)
    mark = hashlib.blake2b(f"{label}\x1f{body}".encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"<<<{mark} {label}\n{body}\n{mark}>>>"


@lru_cache(maxsize=256)
def _safe_label(label: str) -> str:
    return break_tokens(one_line(label, LABEL_CHARS))
