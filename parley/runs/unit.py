"""Holding one unit, wherever that is done: in the run's own process or in a worker's."""

from __future__ import annotations

import time
from collections.abc import Callable

from parley.agents import (
    AuthError,
    Budget,
    BudgetSpent,
    Call,
    ModelError,
    Models,
    ParleyError,
    ReplyCache,
    SearchError,
    Session,
    session,
)
from parley.agents.models.session import Sender
from parley.judging import Outcome, Study, Unit
from parley.runs.rows import UNWRITABLE, Record, Rows, rows_of, unwritable

GC_THRESHOLDS = (50_000, 20, 50)
"""Thousands of live messages make Python's default collector take a fifth of a run's CPU (docs/decisions.md)."""


class RunStopped(ParleyError):
    """An error that concerns the whole run: a refused key, a spent budget, something to mend in the config."""


async def run_unit(
    study: Study,
    unit: Unit,
    models: Models,
    *,
    cache: ReplyCache | None,
    budget: Budget | None,
    on_call: Callable[[Call], None],
    post: Sender | None = None,
) -> Rows:
    """The unit's rows: of what was said, or of why it failed. Only `RunStopped` is raised."""
    started, since = time.time(), time.monotonic()

    def record(outcome: Outcome | None = None, error: str | None = None) -> Record:
        """A clock that is set meanwhile makes no unit end before it began."""
        return Record(unit, started, started + time.monotonic() - since, outcome, error)

    seed = getattr(study.config, "seed", 0)
    try:
        with session(Session(f"{seed}/{unit.id}", cache=cache, budget=budget, on_call=on_call, sender=post)):
            outcome = await study.run(unit, models)
    except (BudgetSpent, AuthError) as error:
        raise RunStopped(str(error)) from None
    except (ModelError, SearchError) as error:
        return rows_of(record(error=str(error)))
    except ParleyError as error:
        raise RunStopped(str(error)) from None
    except Exception as error:  # a fault of the study's own must not take the others with it
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return rows_of(record(error=why))
    try:
        return rows_of(record(outcome))
    except UNWRITABLE as error:  # a user's own study may give anything
        return rows_of(record(error=unwritable(error)))
