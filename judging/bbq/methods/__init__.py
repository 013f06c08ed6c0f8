"""Methods of answering BBQ, one small file each. A new one is a file here and a line below; your own needs neither:

parley run bbq --method default,cot
parley run bbq --method my_method.py:Mine
"""

from parley.judging.bbq.method import BbqMethod
from parley.judging.config import Methods

METHODS: Methods[BbqMethod] = Methods(
    "method",
    {
        "default": f"{__name__}.default:DefaultMethod",
        "cot": f"{__name__}.cot:ChainOfThought",
        "fairness-prompt": f"{__name__}.fairness_prompt:FairnessPromptMethod",
        "fairthinking": f"{__name__}.fairthinking:FairThinking",
        "self-debias-explanation": f"{__name__}.self_debias:SelfDebiasExplanation",
        "self-debias-reprompting": f"{__name__}.self_debias:SelfDebiasReprompting",
        "stardtox": f"{__name__}.stardtox:StardtoxMethod",
        "mabrf": "parley.judging.bbq.mabrf.method:Mabrf",
        "mabrf-search": "parley.judging.bbq.mabrf.method:MabrfSearch",
    },
    members=("name", "Settings", "prompts", "solve"),
    contract="judging/bbq/method.py",
)
