"""Hypothesis strategies that edit valid inputs as text, as bytes and as structures.

NUMBERS, ODD, VALUES and SHAPES are words, values and patterns that have broken parsers.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tomli_w
import yaml
from hypothesis import strategies as st

MAX_CHARACTERS = 1_000_000
NUMBERS = (
    "0", "-0", "7", "10", "11", "-1", "7.5", "7/10", "7 / 10", "7 out of 10", "10/5", "1e999", "-1e999", "1e-999",
    "NaN", "Infinity", "-Infinity", "true", "false", "null", "ten", "zehn", "seven", "5-7", "5 to 7", "0x1F", "0b2",
    "1_000", "007", "7.", ".7", "+7", "９", "１０", "٧", "७", "Ⅶ", "七", "½", "²", "9" * 400, "9" * 5000,
    "1" + "0" * 30, "0.1000000000000000055511151231257827", "9223372036854775808", "-9223372036854775809", "1e5000",
    "7,5", "7%",
)  # fmt: skip
ODD = (
    "\x00", "\x07", "\x1b[31m", "\x1b]0;x\x07", "\x7f", "\x85", "\u2028", "\u2029", "\u200b", "\u200d", "\ufeff",
    "\u00ad", "\u202e", "\u202c", "\u2066", "\u2069", "\ud800", "\udfff", "\U0010ffff", "\ufffe", "e\u0301", "ﬁ",
    "ß", "İ", "ı", "👩🏿‍⚖️", "שלום", "مرحبا", "Ａ", "“", "”", "‘", "’", "„", "«", "…", "\r", "\r\n", "\n", "\t", "\v",
    "\f", "\\", "\\u0000", "\\ud800", "\\udc00\\ud800", '"', "'", "`", "```", "```json\n", "\n```", "{", "}", "[",
    "]", ",", ":", "|", "<", ">", "/*", "*/", "//", "#", "---", "...", "&a ", "*a", "<<: ",
    "!!python/object/apply:os.system [true]", "%s", "{x}", "{}", "{0.__class__}", "$(true)", "=1+1", "../", "..\\",
    "%00", "%2e%2e%2f", "%", "<script>alert(1)</script>", "</script>", "' OR 1=1 --", "; DROP TABLE units;",
    "Answer:", "Answer: 1", "Bias: 7: x", "Relevancy: 3", "SOURCE:", "[SOURCE: ", "1. ", "I'm sorry, ", "As an AI",
    "unanswerable", "A) ", "B", "tie", "the answer is ", "Conclusion:",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 7, 10, 11, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, float("inf"),
    float("-inf"), float("nan"), "", " ", "7", "7/10", "ten", "\x00", "\ud800", "\u202e", "x" * 5000,
    "../../etc/passwd", [], {}, [[]], [None], [1, "2", None], {"a": 1}, {"": ""}, {"text": "x"}, ["user"],
    [{"role": "user"}], [{"content": 7}], "null",
)  # fmt: skip
SHAPES = (
    "[", "{", '{"a":', "[[", "(", '"', "'", "- ", "a: ", "a.", "\n", " ", "\t", "\\", ",", "0", "7", "1.", "A) ",
    "answer: ", "the answer is ", "**", "not ", "…", "<", "[SOURCE: ", ',"x', "<<<", "\u0301", "é", "=", "''",
    "Bias: 7\n", "1. x\n", "x ", ". ",
)  # fmt: skip
COUNTS = (50, 1500) * 16 + (20_000, 300_000)
"""How often a shape is repeated: a parser whose time is not linear becomes slow."""
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=5,
)


def often(draw: st.DrawFn, percent: int) -> bool:
    """True for this share of the inputs."""
    return draw(st.integers(1, 100)) <= percent


def choose(draw: st.DrawFn, choices: Sequence[Any]) -> Any:
    return draw(st.sampled_from(choices))


@st.composite
def edited_text(draw: st.DrawFn, seeds: Sequence[str]) -> str:
    """One of the seeds, after pieces of it were replaced, repeated, removed, or blown up."""
    text = choose(draw, seeds)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        digits = [digit.start() for digit in re.finditer(r"\d", text[:5000])]
        if digits and often(draw, 15):
            start = choose(draw, digits)
        piece = text[start : start + choose(draw, (0, 0, 1, 1, 12, 30, len(text)))]
        new = draw(
            st.sampled_from(ODD)
            | st.sampled_from(NUMBERS)
            | st.text(st.characters(), max_size=3)
            | st.integers(2, 20).map(lambda count, piece=piece: piece * count if len(piece) < 31 else "")
            | st.sampled_from(seeds).map(lambda seed, start=start: seed[start:])
            | st.builds(lambda shape, count: shape * count, st.sampled_from(SHAPES), st.sampled_from(COUNTS))
        )
        text = text[:start] + new + text[start + len(piece) :]
    return text[:MAX_CHARACTERS]


@st.composite
def edited_bytes(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds, after bytes of it were replaced, added or removed."""
    content = choose(draw, seeds)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        length = choose(draw, (0, 1, 1, 1, 8, 64, len(content)))
        content = content[:start] + draw(st.binary(max_size=8)) + content[start + length :]
    return content


@st.composite
def edited_tree(draw: st.DrawFn, trees: Sequence[Any]) -> Any:
    """A structure with some nodes replaced, removed, renamed, doubled or nested."""
    root = [copy.deepcopy(choose(draw, trees))]
    for _ in range(draw(st.integers(1, 3))):
        parent, key = choose(draw, list(_nodes(root)))
        edit = choose(draw, ("replace", "replace", "invent", "nest", "remove", "rename", "double", "edit"))
        if edit == "remove" and parent is not root:
            del parent[key]
        elif edit == "rename" and isinstance(parent, dict):
            parent[choose(draw, ODD) + str(key)] = parent.pop(key)
        elif edit == "nest":
            parent[key] = [parent[key]]
        elif edit == "double" and isinstance(parent, list) and parent is not root:
            parent.insert(key, copy.deepcopy(parent[key]))
        elif edit == "edit" and isinstance(parent[key], str):
            parent[key] = draw(edited_text([parent[key]]))
        else:
            parent[key] = draw(JSON) if edit == "invent" else copy.deepcopy(choose(draw, VALUES))
    return root[0]


def _nodes(parent: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(parent) if isinstance(parent, dict) else range(len(parent)):
        yield parent, key
        if isinstance(parent[key], dict | list):
            yield from _nodes(parent[key])


def edited_file(
    trees: Sequence[Any], write: Callable[[Any], str], contents: Sequence[bytes]
) -> st.SearchStrategy[bytes]:
    """A file edited as a structure, as text or as bytes."""

    def written(tree: Any) -> bytes | None:
        try:
            return write(tree).encode("utf-8", "surrogatepass")
        except Exception:  # not every tree can be written as TOML
            return None

    texts = [content.decode("utf-8", "surrogateescape") for content in contents]
    text = edited_text(texts).map(lambda edited: edited.encode("utf-8", "surrogatepass"))
    tree = [edited_tree(trees).map(written).filter(lambda content: content is not None)] * 2 if trees else []
    return st.one_of(text, text, edited_bytes(contents), *tree)


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def as_jsonl(rows: Any) -> str:
    return "".join(as_json(row) + "\n" for row in rows) if isinstance(rows, list) else as_json(rows)


def as_toml(value: Any) -> str:
    return tomli_w.dumps(value) if isinstance(value, dict) else "= " + as_json(value)


def as_yaml(value: Any) -> str:
    return str(yaml.safe_dump(value, allow_unicode=True))


def as_csv(rows: Any) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(row if isinstance(row, list) else [row] for row in rows or [])
    return out.getvalue()
