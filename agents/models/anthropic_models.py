"""What each Claude model accepts, by its name. The API refuses the rest with an error 400.

Looked up on 16 November 2026; docs/models.md says where.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from parley.agents.models.options import Effort

_NAME = re.compile(r"(opus|sonnet|haiku|fable|mythos)-(\d+)(?:[-.](\d)(?!\d))?")
NEWEST = (5, 5)
"""What a name without a known version is taken for."""
SHOWN = {"type": "adaptive", "display": "summarized"}
"""The model decides how much it thinks; without `display`, current models return no text of it."""


@dataclass(frozen=True, kw_only=True)
class ClaudeRules:
    """What a model accepts.

    Args:
        efforts: the values of the option `effort`.
        thinks: whether it thinks if nothing is said about it.
        off: how thinking is turned off, {} if by saying nothing; None if it cannot be.
        adaptive: whether it can decide how much it thinks. Older models think only with a budget, which is not used.
        temperature: whether it accepts `temperature` and `top_p`, while it does not think.
        forced_tools: whether it can be made to call a tool, while it does not think.
        context: its context window, in tokens.
        output: the highest limit of a reply that it accepts, in tokens, thinking included.
    """

    efforts: tuple[Effort, ...]
    thinks: bool
    off: dict[str, Any] | None
    adaptive: bool
    temperature: bool
    forced_tools: bool
    context: int
    output: int

    def thinking(self, effort: Effort | None) -> dict[str, Any]:
        """The parameter `thinking` of a request; {} if there is none."""
        if effort == "none":
            return self.off or {}
        return SHOWN if self.thinks or (self.adaptive and effort is not None) else {}


def rules_for(model: str) -> ClaudeRules:
    """The rules of a model: `claude-haiku-5-5`, `claude-opus-4-5-20251101`."""
    found = _NAME.search(model)
    line = found.group(1) if found else ""
    version = (int(found.group(2)), int(found.group(3) or 0)) if found else NEWEST
    always = line in ("", "fable", "mythos") or (line == "opus" and version >= (5, 5))
    off: dict[str, Any] | None = {}
    if always:
        off = None
    elif version >= (5, 0):
        off = {"type": "between_tools" if line == "sonnet" and version >= (5, 5) else "disabled"}
    first = {"opus": (4, 5), "sonnet": (4, 6), "haiku": (5, 0)}.get(line, (0, 0))
    levels: tuple[Effort, ...] = ()
    if version >= first:
        levels = ("low", "medium", "high")
        levels += ("xhigh",) if version >= (4, 7) else ()
        levels += ("max",) if version >= (4, 6) else ()
    return ClaudeRules(
        efforts=levels if off is None else ("none", *levels),
        thinks=version >= (5, 0),
        off=off,
        adaptive=version >= (4, 6),
        temperature=version < (4, 7),
        forced_tools=not always and (line == "haiku" or version < (5, 5)),
        context=1_000_000 if version >= (4, 6) else 200_000,
        output=128_000 if version >= (4, 6) else 64_000,
    )
