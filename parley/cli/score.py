"""`parley score bbq|squad|rubric|toxicity|audit`: answers and texts of anyone's, scored, and scorers audited."""

from __future__ import annotations

from parley.cli.commands import Command

VERBS: dict[str, Command] = {
    "bbq": Command("parley.cli.score_bbq", "BBQ: accuracy and bias of a file of answers, category by category"),
    "squad": Command(
        "parley.cli.score_squad", "SQuAD v2: exact match and F1 of a file of answers, by the official rules"
    ),
    "rubric": Command("parley.cli.score_rubric", "texts by a rubric (BS, CE, LS by default), with several judges"),
    "toxicity": Command("parley.cli.score_toxicity", "how toxic texts are, by several scorers side by side"),
    "audit": Command("parley.cli.score_audit", "how far toxicity scorers move with the identity in fixed sentences"),
}
