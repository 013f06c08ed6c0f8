"""LangGraph: a graph with a node for each persona and shared messages, on `ChatOpenAI`. It keeps nothing by default.

As its documentation sets it up (docs.langchain.com, LangGraph "Graph API" and "Persistence"): asynchronous nodes,
`MessagesState`, and `abatch` with `max_concurrency` for many conversations. `langgraph_kept` adds the SQLite
checkpointer, so that every step is kept and a conversation goes on where it was.
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
    """Answers at once."""

    instant: Any

    @property
    def _llm_type(self) -> str:
        return "instant"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.instant.reply()))])

    async def _agenerate(self, *_: Any, **__: Any) -> ChatResult:
        await asyncio.sleep(0)
        return self._generate()


def seen_by(name: str, said: Sequence[BaseMessage]) -> list[BaseMessage]:
    heard = [one if one.name == name else HumanMessage(one.content) for one in said]
    return [SystemMessage(ABOUT[name]), *heard]


def graph(model: BaseChatModel, messages: int, checkpointer: Any) -> Any:
    builder = StateGraph(MessagesState)

    def speaker(name: str) -> Any:
        async def speak(state: MessagesState) -> dict[str, Any]:
            reply = await model.ainvoke(seen_by(name, state["messages"]))
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


async def hold(case: Case, *, kept: bool = False) -> None:
    async with AsyncExitStack() as stack:
        checkpointer = None
        if kept:
            from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

            file = str(Path(case.folder) / "checkpoints.sqlite")
            checkpointer = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(file))
        model = (
            ChatOpenAI(model="bench", base_url=case.url, api_key="none")  # type: ignore[arg-type]
            if case.url
            else InstantModel(instant=case.instant)
        )
        whole = graph(model, case.messages, checkpointer)
        configs = [
            {"max_concurrency": case.at_once, "configurable": {"thread_id": str(n)}} for n in range(case.conversations)
        ]
        # What was begun is asked for with None and goes on from its last step; what is whole is left alone.
        asked: list[Any] = [{"messages": [HumanMessage(TASK)]}] * case.conversations
        if case.again:
            states = [await whole.aget_state(config) for config in configs]
            left = [(config, state) for config, state in zip(configs, states, strict=True) if not _whole(state)]
            configs = [config for config, _ in left]
            asked = [None if state.values else {"messages": [HumanMessage(TASK)]} for _, state in left]
        results = await whole.abatch(asked, configs)
    assert all(len(result["messages"]) == case.messages + 1 for result in results)


def _whole(state: Any) -> bool:
    return bool(state.values) and not state.next


if __name__ == "__main__":
    main(hold, ["langgraph", "langchain-openai", "openai"])
