"""The shipped methods of answering BBQ. A new one is a class here and a line below; your own is a file:

parley run bbq --method default,cot
parley run bbq --method my_method.py:Mine
"""

from parley.judging.bbq.method import BbqMethod
from parley.judging.config import Methods

METHODS: Methods[BbqMethod] = Methods(
    "method",
    {
        "default": f"{__name__}.prompted:DefaultMethod",
        "cot": f"{__name__}.prompted:ChainOfThought",
        "fairness-prompt": f"{__name__}.prompted:FairnessPromptMethod",
        "fairthinking": f"{__name__}.fairthinking:FairThinking",
        "self-debias-explanation": f"{__name__}.prompted:SelfDebiasExplanation",
        "self-debias-reprompting": f"{__name__}.prompted:SelfDebiasReprompting",
        "stardtox": f"{__name__}.stardtox:StardtoxMethod",
        "mabrf": "parley.judging.bbq.mabrf.loop:Mabrf",
        "mabrf-search": "parley.judging.bbq.mabrf.loop:MabrfSearch",
    },
    members=("name", "Settings", "prompts", "solve"),
    contract="judging/bbq/method.py",
)
