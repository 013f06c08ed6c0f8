"""Methods by name: ours, those of installed packages (entry points in the group `parley.stardtox`), and files."""

from __future__ import annotations

from parley.judging.methods import Methods
from parley.judging.stardtox.method import Method

METHODS: dict[str, str] = {
    "default": "parley.judging.stardtox.baselines:Default",
    "fairness-prompt": "parley.judging.stardtox.baselines:FairnessPrompt",
    "self-debias-gen": "parley.judging.stardtox.baselines:SelfDebiasGen",
    "stardtox": "parley.judging.stardtox.loop:Stardtox",
    "stardtox-no-performance": "parley.judging.stardtox.loop:WithoutPerformance",
}
MEMBERS = ("name", "Settings", "needs_next_tokens", "ignores", "prompts", "drafts", "complete")
METHODS_OF_STARDTOX: Methods[Method] = Methods(METHODS, "parley.stardtox", MEMBERS, "judging/stardtox/method.py")
