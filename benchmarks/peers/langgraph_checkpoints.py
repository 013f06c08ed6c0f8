"""LangGraph with its SQLite checkpointer, which stores every step."""

from __future__ import annotations

from functools import partial

from benchmarks.peers.common import main
from benchmarks.peers.langgraph import run_case

if __name__ == "__main__":
    packages = ["langgraph", "langchain-openai", "openai", "langgraph-checkpoint-sqlite"]
    main(partial(run_case, checkpoints=True), packages, resumes=True)
