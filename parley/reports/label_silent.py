"""What a silent ballot shows, without its label and its question, so that people can rate the same text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parley.runs import RunFile
from parley.runs.reading import template_fields


def silent_fields(file: RunFile, unit: Mapping[str, Any]) -> dict[str, str]:
    """The situation and the answers of a silent ballot, by name; empty if its prompt is not as its wordings say.

    The unit's own wordings, as the run stores them, are combined into one template of its prompt.

    Args:
        file: The run.
        unit: The unit as `read_unit` gives it.
    """
    facets = unit["facets"]
    prompts = dict(file.rows("SELECT name, text FROM prompts WHERE name NOT LIKE 'persona/%'")[1])
    label = prompts.get(f"label/{facets.get('wording')}", "")
    kind, sides = ("pair", ("_a", "_b")) if {"response_a", "flawed"} & facets.keys() else ("single", ("",))
    task = next((message["text"] for message in unit["messages"] if message["role"] == "narrator"), "")
    # The run stores a label's words, but not where they stand.
    places = ("{label}\n{text}", "{label}\n{heading}\n{text}", "{heading}\n{text}\n\n{label}")
    templates = []
    for place in places if label else ("{heading}\n{text}",):
        whole = prompts.get(f"prompt/{kind}", "")
        for side in sides:
            called = prompts.get(f"prompt/answer{side}", "")
            heading = prompts.get("prompt/heading", "").replace("{answer}", called)
            block = place.replace("{heading}", heading).replace("{text}", f"{{response{side}}}")
            whole = whole.replace(f"{{answer{side}}}", block.replace("{label}", label.replace("{answer}", called)))
        for asked in (kind, f"{kind}_ties", "metric"):
            question = prompts.get(f"question/{facets.get('question')}/{asked}", "{question}")
            templates.append(whole.replace("{question}", question))
    return template_fields(task, templates)
