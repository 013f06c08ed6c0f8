"""A run's budget in calls, tokens and money: checked before each call, so that it is never overrun by much.

Calls are counted before they are made and never exceed the limit; tokens and money are known only afterwards,
so calls already under way may end a little above it.
"""

from __future__ import annotations

from dataclasses import dataclass

from parley.agents.calls import Call
from parley.agents.errors import BudgetSpent


@dataclass(slots=True)
class Budget:
    """What a run may take, and what it has taken so far."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    async def take_call(self) -> None:
        """Count a call that is about to be made. A budget shared between processes may have to ask first."""
        self.refuse_if_spent()
        self.calls += 1

    def refuse_if_spent(self) -> None:
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise BudgetSpent(f"the budget of {self.max_calls} calls is spent")
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            raise BudgetSpent(f"the budget of {self.max_tokens} tokens is spent")
        if self.max_cost is not None and self.cost >= self.max_cost:
            raise BudgetSpent(f"the budget of ${self.max_cost:g} is spent")

    def give_call_back(self) -> None:
        """A call that gave no reply is not counted."""
        self.calls -= 1

    def spend(self, call: Call) -> None:
        self.tokens += call.prompt_tokens + call.completion_tokens
        self.cost += call.cost or 0.0
