"""Every way in which a thought can stand before an answer, with an answer in it that is not the model's.

for name, write in FORMS_OF_THOUGHT.items():
    text = write('Perhaps {"score": 1}.', '{"score": 9}')
"""

from __future__ import annotations

from collections.abc import Callable

from parley.agents.models.marks import FORMS

Write = Callable[[str, str], str]


def _between(before: str, after: str) -> Write:
    return lambda thought, answer: f"{before}{thought}{after}{answer}"


FORMS_OF_THOUGHT: dict[str, Write] = {
    **{form.name: _between(*form.example) for form in FORMS},
    **{
        f"{form.name}, opened by the template": _between("", form.example[1])
        for form in FORMS
        if form.name != "granite"
    },
    "thinking": _between("<thinking>", "</thinking>"),
    "reasoning": _between("<reasoning>", "</reasoning>"),
    "thought": _between("<thought>", "</thought>"),
    "seed": _between("<seed:think>", "</seed:think>"),
    "minimax m3": _between("<mm:think>", "</mm:think>"),
    "hunyuan": _between("<think:6124c78e>", "</think:6124c78e>"),
    "longcat": _between("<longcat_think>", "</longcat_think>"),
    "k2 horizon": _between("<ifm|think_fast>", "</ifm|think_fast>"),
    "capitals": _between("<THINK>", "</THINK>"),
    "a space in the tag": _between("<think >", "</think >"),
    "an attribute": _between('<think type="deep">', "</think>"),
    "a byte-order mark": _between("\ufeff<think>", "</think>"),
    "a zero-width space": _between("\u200b<think>", "</think>"),
    "Sure.": _between("Sure. <think>", "</think>"),
    "CRLF": _between("<think>\r\n", "\r\n</think>\r\n\r\n"),
    "nested": _between("<think>So <think>a</think> and then: ", "</think>"),
    "quoted": _between("<think>I must write </think> before it. ", "</think>"),
    "twice": lambda thought, answer: f"<think>{thought}</think>\n<think>{thought}</think>{answer}",
    "two forms": lambda thought, answer: f"<think>{thought}</think>[THINK]{thought}[/THINK]{answer}",
    "granite with its answer framed": lambda thought, answer: (
        f"<think>{thought}</think>\n<response>{answer}</response>"
    ),
    "hunyuan with its answer framed": lambda thought, answer: (
        f"<think>\n{thought}\n</think>\n<answer>\n{answer}\n</answer>"
    ),
    "cohere with its answer framed": lambda thought, answer: (
        f"<|START_THINKING|>{thought}<|END_THINKING|><|START_RESPONSE|>{answer}<|END_RESPONSE|>"
    ),
    "harmony to its end": lambda thought, answer: (
        f"<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant<|channel|>final "
        f"<|constrain|>json<|message|>{answer}<|return|>"
    ),
    "gemma with an empty thought at its end": lambda thought, answer: (
        f"<|channel>thought\n{thought}<channel|>{answer}<|channel>thought\n<channel|>"
    ),
}
"""By name: the whole text for a thought and an answer."""


UNCLOSED: dict[str, str] = {form.name: form.example[0] for form in FORMS if not form.plain}
"""By name: how a thought begins that is never closed."""
