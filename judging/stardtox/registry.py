"""Methods by name: shipped, of installed packages (entry points in the group `parley.stardtox`), or from files."""

from __future__ import annotations

from parley.judging.methods import Methods
from parley.judging.stardtox.method import CompletionMethod

METHODS: dict[str, str] = {
    "default": "parley.judging.stardtox.baselines:DefaultCompletion",
    "fairness-prompt": "parley.judging.stardtox.baselines:FairnessPromptCompletion",
    "self-debias-gen": "parley.judging.stardtox.baselines:SelfDebiasGen",
    "stardtox": "parley.judging.stardtox.loop:StardtoxCompletion",
    "stardtox-no-performance": "parley.judging.stardtox.loop:WithoutPerformance",
}
MEMBERS = ("name", "Settings", "needs_next_tokens", "ignores", "prompts", "drafts", "complete")
METHODS_OF_STARDTOX: Methods[CompletionMethod] = Methods(
    METHODS, "parley.stardtox", MEMBERS, "judging/stardtox/method.py"
)
