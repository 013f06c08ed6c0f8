"""Texts with placeholders, such as "written by {noun}", and the English indefinite article before them.

fill("{A} {noun} wrote it.", {"noun": "atheist"})    # "An atheist wrote it."
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_AN = re.compile(
    r"""
    (?:hour|honest|honou?r|heir)                # the h is silent
    | 8 | 1[18](?!\d) | 1[18](?=,?\d{3}(?!\d))   # eight, eleven, eighteen, eleven thousand
    | (?-i:[AEFHILMNORSX](?:[A-Z]+\b|-|$))       # letters that are read out: an LGBT person, an F
    | (?!eu|ewe|one\b|once\b|u(?:ni(?!n|m|dent)|biq|s[eu]|top|kr|rug|ga)|(?-i:U[A-Z]*\b))[aeiouàáâäåæèéêëìíîïòóôöøœùúûü]
    """,
    re.IGNORECASE | re.VERBOSE,
)


def article(phrase: str) -> str:
    """The English indefinite article for a phrase, by its first sound: "an atheist", "an 18-year-old", "a user".

    Args:
        phrase: The words after the article; leading quotation marks are ignored.
    """
    return "an" if _AN.match(phrase.lstrip("“”\"'‘’([ ")) else "a"


PLACEHOLDER = re.compile(r"\{(\w+)\}")


def fill(template: str, values: Mapping[str, str]) -> str:
    """Fill in a template's placeholders; `{a}` and `{A}` become the article for the next words.

    `{Noun}` is the value of `noun` with a capital letter. Braces in values stay as they are: an answer may contain
    them. Raises KeyError for a placeholder without a value.

    Args:
        template: The text.
        values: The value of each placeholder.
    """
    pieces = PLACEHOLDER.split(template)  # text, key, text, key, …, text
    text = pieces[-1]
    for literal, key in zip(pieces[-3::-2], pieces[-2::-2], strict=True):  # from the end: an article needs what follows
        if key in values:
            value = values[key]
        elif key in ("a", "A"):
            value = article(text)
            value = value.capitalize() if key == "A" else value
        else:
            value = values[form_key(key)]
            value = value[:1].upper() + value[1:]
        text = f"{literal}{value}{text}"
    return text


def form_key(key: str) -> str:
    """The name of a placeholder's value: "noun" for {Noun}."""
    return key[:1].lower() + key[1:]
