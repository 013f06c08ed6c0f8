"""Plain English: words that readers had to guess do not come back (docs/glossary.md has those to use)."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECKED = [
    *("agents", "scenarios", "judging", "analysis", "training", "parley", "benchmarks"),
    *("docs", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"),
]
"""Files, patterns and folders; prompts and data are never checked."""
AVOIDED = {
    r"\b(go(es)?|going|went) on\b": "resume, continue",
    r"\bcut short\b": "interrupted",
    r"\bmend(s|ed|ing)?\b": "fix, correct",
    r"\bnone stands?\b": "no difference is significant",
    r"\b(is|are|was|were) no (file|folder|number|run|text|model|study|name|page|score|reply|JSON)\b": "is not a …",
    r"\b(a|one) \w+ a (core|unit|provider|verdict|scorer|prompt|package|room|message|line)\b": "one … per …",
    r"\bso many (calls|tokens|units|texts|scenarios|US dollars)\b": "the number of …, this many",
    r"\bof one's own\b|\bwhoever\b|\bin the clear\b|\bat hand\b": "your own; plain subjects",
}
ANY = re.compile("|".join(AVOIDED), re.I)
ALLOWED = re.compile(r"there (is|are|was|were) no")
"""Phrases that are English."""


def checked_files() -> list[Path]:
    files = [path for pattern in CHECKED for path in sorted(ROOT.glob(pattern))]
    inside = [
        file for path in files if path.is_dir() for kind in ("py", "md") for file in sorted(path.rglob(f"*.{kind}"))
    ]
    return [path for path in (*files, *inside) if path.suffix in (".py", ".md") and path.resolve() == path]


def words_of(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a page outside code blocks; names, strings and comments of a module, by line."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        prose = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.S | re.M)
        yield from enumerate(prose.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string.replace("_", " ")
        elif token.type in (tokenize.STRING, tokenize.COMMENT) or "FSTRING_MIDDLE" in tokenize.tok_name[token.type]:
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line


def avoided_words(path: Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: '{match[0]}' (use: {instead})"
        for number, line in words_of(path)
        if ANY.search(line)
        for pattern, instead in AVOIDED.items()
        for match in re.finditer(pattern, ALLOWED.sub("", line), re.I)
    ]


def test_words_that_readers_had_to_guess_are_avoided() -> None:
    files = checked_files()
    assert len(files) > 50
    assert [line for path in files for line in avoided_words(path)] == []


def test_the_patterns_find_what_they_should() -> None:
    text = "one file a provider; 'x' is no number; there is no file; the run goes on"
    matches = [match[0] for pattern in AVOIDED for match in re.finditer(pattern, ALLOWED.sub("", text))]
    assert matches == ["goes on", "is no number", "one file a provider"]
