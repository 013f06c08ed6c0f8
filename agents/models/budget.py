"""A run's budget in calls, tokens and dollars, checked before each call.

Calls are counted before they are made and never exceed the limit. Tokens and cost are known only afterwards, so calls
in progress may end a little above it.
"""

from __future__ import annotations

from dataclasses import dataclass

from parley.agents.transcripts import Call
from parley.base.errors import BudgetSpent
from parley.base.text import plural


@dataclass(slots=True)
class Budget:
    """The limits of a run, and what it has used so far.

    Args:
        max_calls: maximum number of calls; None for no limit.
        max_tokens: maximum number of prompt and reply tokens; None for no limit.
        max_cost: maximum cost in US dollars; None for no limit.
        calls: calls made so far; not 0 when a run is resumed.
        tokens: tokens used so far.
        cost: dollars spent so far.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    async def take_call(self) -> None:
        """Count a call that is about to be made. Asynchronous, since a budget shared by processes may have to wait."""
        self.refuse_if_spent()
        self.calls += 1

    def refuse_if_spent(self) -> None:
        """Raise `BudgetSpent` if a limit is reached."""
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise BudgetSpent(f"the budget of {plural(self.max_calls, 'call')} is spent")
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            raise BudgetSpent(f"the budget of {plural(self.max_tokens, 'token')} is spent")
        if self.max_cost is not None and self.cost >= self.max_cost:
            raise BudgetSpent(f"the budget of ${self.max_cost:g} is spent")

    def give_call_back(self) -> None:
        """A call that gave no reply does not count."""
        self.calls -= 1

    def spend(self, call: Call) -> None:
        """Count the tokens and the cost of a finished call."""
        self.tokens += call.prompt_tokens + call.completion_tokens
        self.cost += call.cost or 0.0
