"""Parley: a complete run, as by `parley run`, every message and call in its run file. The reply cache is off."""

from __future__ import annotations

from benchmarks import panel
from benchmarks.peers.common import Case, main


async def run_case(case: Case) -> None:
    panel.InstantClient.reply = case.instant.reply
    model = f"server/bench?base_url={case.url}&max_connections={case.at_once}" if case.url else "instant/bench"
    await panel.run_panels(case.folder, case.conversations, case.at_once, model, case.rounds)


if __name__ == "__main__":
    main(
        run_case,
        ["parley-autogen", "pyautogen", "autogen-agentchat", "autogen-core", "aiohttp", "pydantic"],
        resumes=True,
    )
