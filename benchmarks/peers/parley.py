"""Parley: a whole run as `parley run` holds it, every message and call in its run file. The reply cache is off."""

from __future__ import annotations

from benchmarks import panel
from benchmarks.peers.common import Case, main


async def hold(case: Case) -> None:
    panel.InstantClient.say = case.instant.reply
    at = f"server/bench?base_url={case.url}&max_connections={case.at_once}" if case.url else "instant/bench"
    await panel.hold_panels(case.folder, case.conversations, case.at_once, at, case.rounds)


if __name__ == "__main__":
    main(
        hold, ["parley-autogen", "pyautogen", "autogen-agentchat", "autogen-core", "aiohttp", "pydantic"], resumes=True
    )
