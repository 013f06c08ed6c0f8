"""LangGraph with its SQLite checkpointer, which keeps every step."""

from __future__ import annotations

from functools import partial

from benchmarks.peers.common import main
from benchmarks.peers.langgraph import hold

if __name__ == "__main__":
    packages = ["langgraph", "langchain-openai", "openai", "langgraph-checkpoint-sqlite"]
    main(partial(hold, kept=True), packages, resumes=True)
