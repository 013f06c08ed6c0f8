"""Values, words and shapes that have broken parsers."""

from __future__ import annotations

from typing import Any

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
