"""LangGraph: a graph with a node for each persona and shared messages, on `ChatOpenAI`. It stores nothing by default.

Set up as in its documentation (docs.langchain.com, LangGraph "Graph API" and "Persistence"): asynchronous nodes,
`MessagesState`, and `abatch` with `max_concurrency` for many conversations. `langgraph_checkpoints` adds the SQLite
checkpointer, so that every step is stored and a conversation can resume.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

from benchmarks.peers.common import Case, main
from benchmarks.workload import ABOUT, NAMES, TASK


class InstantModel(BaseChatModel):
    """Answers immediately."""

    instant: Any

    @property
    def _llm_type(self) -> str:
        return "instant"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.instant.reply()))])

    async def _agenerate(self, *_: Any, **__: Any) -> ChatResult:
        await asyncio.sleep(0)
        return self._generate()


def prompt_for(name: str, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    history = [message if message.name == name else HumanMessage(message.content) for message in messages]
    return [SystemMessage(ABOUT[name]), *history]


def graph(model: BaseChatModel, messages: int, checkpointer: Any) -> Any:
    builder = StateGraph(MessagesState)

    def speaker(name: str) -> Any:
        async def speak(state: MessagesState) -> dict[str, Any]:
            reply = await model.ainvoke(prompt_for(name, state["messages"]))
            reply.name = name
            return {"messages": [reply]}

        return speak

    for name in NAMES:
        builder.add_node(name, speaker(name))
    builder.add_edge(START, NAMES[0])
    for name, following in pairwise(NAMES):
        builder.add_edge(name, following)
    builder.add_conditional_edges(
        NAMES[-1], lambda state: END if len(state["messages"]) > messages else NAMES[0], [NAMES[0], END]
    )
    return builder.compile(checkpointer=checkpointer)


async def run_case(case: Case, *, checkpoints: bool = False) -> None:
    async with AsyncExitStack() as stack:
        checkpointer = None
        if checkpoints:
            from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

            file = str(Path(case.folder) / "checkpoints.sqlite")
            checkpointer = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(file))
        model = (
            ChatOpenAI(model="bench", base_url=case.url, api_key="none")  # type: ignore[arg-type]
            if case.url
            else InstantModel(instant=case.instant)
        )
        debate = graph(model, case.messages, checkpointer)
        configs = [
            {"max_concurrency": case.at_once, "configurable": {"thread_id": str(n)}} for n in range(case.conversations)
        ]
        # A conversation that was started resumes from its last step with None; a finished one is left alone.
        inputs: list[Any] = [{"messages": [HumanMessage(TASK)]}] * case.conversations
        if case.resume:
            states = [await debate.aget_state(config) for config in configs]
            unfinished = [
                (config, state) for config, state in zip(configs, states, strict=True) if not _finished(state)
            ]
            configs = [config for config, _ in unfinished]
            inputs = [None if state.values else {"messages": [HumanMessage(TASK)]} for _, state in unfinished]
        results = await debate.abatch(inputs, configs)
    assert all(len(result["messages"]) == case.messages + 1 for result in results)


def _finished(state: Any) -> bool:
    return bool(state.values) and not state.next


if __name__ == "__main__":
    main(run_case, ["langgraph", "langchain-openai", "openai"])
