"""All marks that separate a model's thinking from its answer.

Looked up on 17 November 2026 in vLLM (`vllm/reasoning`, 82 modules), llama.cpp (`common/chat-parser.cpp` and
`common/parsers`), SGLang's page on its reasoning parser, and the chat templates that llama.cpp tests. Marks that only
frame an answer (`FRAME_START`, `FRAME_END`) come from the same places.

A server that removes special tokens leaves the words between them: `analysis…assistantfinal…` of harmony, and a first
line `thought` of Gemma, whose end can then not be seen.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Form(NamedTuple):
    """A way of marking thinking.

    Args:
        name: The name of the form in Parley.
        example: An opening and a closing mark, as a model writes them.
        opens: Pattern of the opening mark; all patterns ignore case unless they say otherwise.
        closes: Pattern of the closing mark.
        models: The models that write it.
        plain: Whether the marks are ordinary words. Such a thought counts only if it is closed.
    """

    name: str
    example: tuple[str, str]
    opens: str
    closes: str
    models: str
    plain: bool = False


_WORD = r"(?:[a-z]\w*[:|_])?(?:think(?:ing)?|thoughts?|reasoning)(?:_fast(?:er)?)?(?:[\s:][^<>]{0,200})?"
_ASSISTANT = r"(?:<\|start\|>\s*assistant\s*)?"
_CHANNEL = r"<\|channel\|>\s*"
_MESSAGE = r"\b[^<]{0,100}(?:<\|constrain\|>[^<]{0,100})?<\|message\|>"

FORMS: tuple[Form, ...] = (
    Form(
        "tag",
        ("<think>", "</think>"),
        rf"<{_WORD}>",
        rf"<\s?/\s?{_WORD}>",
        "most: DeepSeek, Qwen, GLM, Kimi K2, MiniMax, Nemotron, OLMo, Phi-4, Granite 3.3, ERNIE, Step; <thought> of "
        "EXAONE Deep, <thinking> of Apriel 1.5, <reasoning> of Reka, <seed:think> of Seed-OSS, <mm:think> of MiniMax "
        "M3, <think:…> of Hunyuan, <longcat_think> of LongCat, <ifm|think_fast> of K2 Horizon",
    ),
    Form("mistral", ("[THINK]", "[/THINK]"), r"\[THINK\]", r"\[/THINK\]", "Magistral, Ministral 3"),
    Form("kimi", ("◁think▷", "◁/think▷"), r"◁think▷", r"◁/think▷", "Kimi-VL"),
    Form(
        "cohere",
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        r"<\|START_THINKING\|>",
        r"<\|END_THINKING\|>",
        "Command A Reasoning",
    ),
    Form(
        "harmony",
        ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
        rf"{_ASSISTANT}{_CHANNEL}(?:analysis|commentary){_MESSAGE}",
        rf"(?:<\|end\|>\s*)?{_ASSISTANT}{_CHANNEL}final{_MESSAGE}",
        "gpt-oss",
    ),
    Form(
        "harmony without special tokens",
        ("analysis", "assistantfinal"),
        r"\A\s*(?-i:analysis(?=[A-Z\"'{(\[0-9]))",
        r"(?-i:assistantfinal(?:\s?json(?=\s*\{))?)",
        "gpt-oss behind a server that removes special tokens",
    ),
    Form("gemma", ("<|channel>thought\n", "<channel|>"), r"<\|channel>\s*thought\s*", r"<channel\|>", "Gemma 4"),
    Form(
        "granite",
        ("Here is my thought process:", "Here is my response:"),
        r"\A\s*here(?:['’]s| is) my thought process:",
        r"here(?:['’]s| is) my response:",
        "Granite 3.2",
        plain=True,
    ),
    Form(
        "apriel",
        ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
        r"\A\s*here are my reasoning steps:",
        r"\[BEGIN FINAL RESPONSE\]",
        "Apriel 1.6",
        plain=True,
    ),
    Form(
        "apertus",
        ("<|inner_prefix|>", "<|inner_suffix|>"),
        r"<\|inner_prefix\|>",
        r"<\|inner_suffix\|>",
        "Apertus",
    ),
    Form(
        "plamo",
        ("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
        r"<\|plamo:begin_think:plamo\|>",
        r"<\|plamo:end_think:plamo\|>",
        "PLaMo 3",
    ),
    Form("solar 2", ("<|think:start|>", "<|think:end|>"), r"<\|think:start\|>", r"<\|think:end\|>", "Solar Open 2"),
    Form(
        "solar",
        ("<|think|>", "<|end|><|begin|>assistant<|content|>"),
        r"<\|think\|>",
        r"(?:<\|end\|>\s*)?(?:<\|begin\|>\s*assistant\s*)?<\|content\|>",
        "Solar Open",
    ),
    Form(
        "kimi k3",
        ("<|open|>think<|sep|>", "<|close|>think<|sep|><|open|>response<|sep|>"),
        r"<\|open\|>think<\|sep\|>",
        r"<\|close\|>think<\|sep\|>\s*(?:<\|open\|>response<\|sep\|>)?|<\|open\|>response<\|sep\|>",
        "Kimi K3",
    ),
    Form(
        "inkling",
        ("<|content_thinking|>", "<|end_message|><|message_model|><|content_text|>"),
        r"<\|content_thinking\|>",
        r"(?:<\|end_message\|>\s*)?(?:<\|message_model\|>\s*)?<\|content_text\|>",
        "Inkling",
    ),
    Form(
        "muse",
        ("to=self<|message|>", "<|eom|><|start|>assistant to=user<|message|>"),
        r"(?<=to=self)<\|message\|>",
        r"(?:<\|eom\|>\s*)?<\|start\|>\s*assistant\s*(?:to=user)?<\|message\|>|(?<=to=user)<\|message\|>",
        "Muse Glimmer",
    ),
    Form(
        "hyperclova",
        ("/think\n", "<|im_end|>\n<|im_start|>assistant\n"),
        r"\A\s*/think\n",
        r"(?:<\|im_end\|>\s*)?<\|im_start\|>\s*assistant\b\s*",
        "HyperCLOVA X SEED Think",
    ),
    Form("pangu", ("[unused16]", "[unused17]"), r"\[unused16\]", r"\[unused17\]", "openPangu"),
)

FRAME_START = re.compile(
    r"\s*(?:<(?:answer|response|output|solution)>|<\|(?:START_RESPONSE|START_TEXT|begin_of_solution)\|>)\s*",
    re.IGNORECASE,
)
FRAME_END = re.compile(
    r"(?:</(?:answer|response|output|solution)>|\[END FINAL RESPONSE\]|<turn\|>"
    r"|<\|close\|>(?:response|message)<\|sep\|>"
    r"|<\|(?:END_RESPONSE|END_TEXT|end_of_solution|return|end|eom|eot|eot_id|im_end|end_message|end_of_msg|plamo:tag"
    r"|content_model_end_sampling)\|>)\s*\Z",
    re.IGNORECASE,
)
STRIPPED_GEMMA = re.compile(r"\A\s*thought\n")
"""The beginning of Gemma's thinking if special tokens are removed; its end is then not marked."""
