"""Inspect AI on the workload, for `benchmarks.overhead`, which starts it as PYTHON -m benchmarks.inspect_peer.

For each number of conversations read from stdin it evaluates so many samples with the usual log, and writes the
CPU milliseconds a message.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import tempfile
import time
from contextlib import redirect_stdout
from typing import Any

os.environ["INSPECT_DISPLAY"] = "none"

from inspect_ai import Task, eval_async
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.solver import solver

from benchmarks.workload import MESSAGES, TASK, Message, converse, reply

KINDS = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


def answer(*_: Any) -> ModelOutput:
    output = ModelOutput.from_content("mockllm/model", reply())
    output.usage = ModelUsage(input_tokens=100, output_tokens=120, total_tokens=220)
    return output


@solver
def debate() -> Any:
    async def solve(state: Any, generate: Any) -> Any:
        model = get_model()

        async def call(messages: list[Message]) -> str:
            prompt = [KINDS[message["role"]](content=message["content"]) for message in messages]
            return (await model.generate(prompt)).completion

        await converse(call)
        return state

    return solve


async def hold(conversations: int, folder: str) -> None:
    task = Task(dataset=MemoryDataset([Sample(input=TASK) for _ in range(conversations)]), solver=debate())
    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    logs = await eval_async(task, model=model, max_samples=conversations, max_connections=conversations, log_dir=folder)
    assert logs[0].status == "success", logs[0].error


for line in sys.stdin:
    gc.collect()
    before = time.process_time()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(None):
        asyncio.run(hold(int(line), folder))
    print(1e3 * (time.process_time() - before) / (int(line) * MESSAGES), flush=True)
