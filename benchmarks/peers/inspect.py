"""Inspect AI: a task with one sample per conversation, a solver that calls `generate`, and its default log.

Set up as in its documentation (inspect.aisi.org.uk, "Model Providers", "Model Concurrency", "Parallelism"): a
compatible server is reached by the provider `openai-api`, `max_connections` and `max_samples` are raised to the number
of conversations, and the log is what it writes by default. Only its display is turned off.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

os.environ["INSPECT_DISPLAY"] = "none"
os.environ["BENCH_API_KEY"] = "none"

from inspect_ai import Task, eval_async, eval_retry_async, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Model,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.solver import solver

from benchmarks.peers import common
from benchmarks.peers.common import Case, main
from benchmarks.workload import TASK, Message, converse

KINDS = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


@solver
def debate(rounds: int) -> Any:
    async def solve(state: Any, generate: Any) -> Any:
        model = get_model()

        async def call(messages: list[Message]) -> str:
            prompt = [KINDS[message["role"]](content=message["content"]) for message in messages]
            return (await model.generate(prompt)).completion

        await converse(call, rounds)
        return state

    return solve


@task
def debates(conversations: int, rounds: int) -> Task:
    samples = [Sample(id=n + 1, input=TASK) for n in range(conversations)]
    return Task(dataset=MemoryDataset(samples), solver=debate(rounds))


@modelapi(name="instant")
class InstantModel(ModelAPI):
    """Answers immediately."""

    async def generate(self, *_: Any, **__: Any) -> ModelOutput:
        await asyncio.sleep(0)
        output = ModelOutput.from_content("instant/bench", common.INSTANT.reply())
        output.usage = ModelUsage(input_tokens=100, output_tokens=120, total_tokens=220)
        return output


def model_of(case: Case) -> Model:
    if case.url:
        return get_model("openai-api/bench/bench", base_url=case.url, memoize=False)
    return get_model("instant/bench", memoize=False)


async def run_case(case: Case) -> None:
    common.INSTANT = case.instant  # in `common`: to resume, Inspect loads this module a second time, by its path
    limits: dict[str, Any] = {"max_samples": case.at_once, "max_connections": case.at_once}
    with redirect_stdout(None):
        if case.resume:
            log = next(str(path) for path in Path(case.folder).iterdir())
            logs = await eval_retry_async(log, log_dir=case.folder, **limits)
        else:
            study = debates(case.conversations, case.rounds)
            logs = await eval_async(
                study, model=model_of(case), log_dir=case.folder, continue_on_fail=True, log_level="warning", **limits
            )
    if logs[0].status != "success":
        raise RuntimeError(str(logs[0].error and logs[0].error.message) or logs[0].status)


if __name__ == "__main__":
    main(run_case, ["inspect-ai", "openai"], resumes=True)
