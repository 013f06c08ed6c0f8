"""Running one unit, in the run's own process or in a worker's."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

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
from parley.agents.models.session import PendingReplies, Sender
from parley.base.redaction import HiddenAddresses
from parley.judging import Outcome, Study, Unit
from parley.runs.rows import UNWRITABLE, Record, Rows, storable, to_rows, unwritable_message

GC_THRESHOLDS = (50_000, 20, 50)
"""With thousands of live messages, Python's default garbage collection takes a fifth of a run's CPU time
(docs/decisions.md)."""


class RunStopped(ParleyError):
    """An error that concerns the whole run: a refused key, a spent budget, a mistake in the config."""


def stored_error(study: Study, error: str) -> str:
    """An error as the run file keeps it, without the addresses of servers: the file may be shared."""
    return HiddenAddresses(study.config.model_dump()).hide_in_error(error)


async def run_unit(
    study: Study,
    unit: Unit,
    models: Models,
    *,
    cache: ReplyCache | None,
    pending: PendingReplies | None,
    budget: Budget | None,
    on_call: Callable[[Call], None],
    post: Sender | None = None,
) -> Rows:
    """Run one unit and return its rows: the conversation and verdicts, or the error. Raises only `RunStopped`.

    Args:
        study: The study that the unit belongs to.
        unit: What to run.
        models: The clients of the study's models.
        cache: The reply cache; None asks the models for every reply.
        pending: Replies of earlier attempts at this unit, to which new ones are added; None if there are none.
        budget: Checked before every call; None is no limit.
        on_call: Called after every model call, whether the unit is finished later or not.
        post: Sends a request in place of the client's own `send`.
    """
    started, clock = time.time(), time.monotonic()

    def record(outcome: Outcome | None = None, error: str | None = None) -> Record:
        # The end is measured by the monotonic clock: if the system's clock is set back, no unit ends before it began.
        finished = started + time.monotonic() - clock
        return Record(unit=unit, started_at=started, finished_at=finished, outcome=outcome, error=error)

    def failed(error: str) -> Rows:
        # The terminal still shows the address, which may be what must be corrected.
        return replace(to_rows(record(error=stored_error(study, error))), error=storable(error))

    seed = getattr(study.config, "seed", 0)
    try:
        sample = f"{seed}/{unit.id}"
        current = Session(sample, cache=cache, pending=pending, budget=budget, on_call=on_call, sender=post)
        with session(current):
            outcome = await study.run(unit, models)
    except (BudgetSpent, AuthError) as error:
        raise RunStopped(str(error)) from None
    except (ModelError, SearchError) as error:
        return failed(str(error))
    except ParleyError as error:
        raise RunStopped(str(error)) from None
    except Exception as error:  # a bug in a study fails this unit, not the run
        return failed(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    try:
        return to_rows(record(outcome))
    except (*UNWRITABLE, AttributeError) as error:  # a user's study may return anything
        return failed(unwritable_message(error))
