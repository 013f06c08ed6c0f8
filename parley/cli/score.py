"""`parley score bbq|squad|rubric|toxicity|audit|calibrate`: score answers and texts, audit and calibrate scorers."""

from __future__ import annotations

from parley.cli.commands import Command

VERBS: dict[str, Command] = {
    "bbq": Command("parley.cli.score_bbq", "accuracy and bias of answers to BBQ, by category"),
    "squad": Command("parley.cli.score_squad", "exact match and F1 of answers to SQuAD v2, by the official rules"),
    "rubric": Command(
        "parley.cli.score_rubric", "score texts by a rubric (BS, CE, LS by default), with several judges"
    ),
    "toxicity": Command(
        "parley.cli.score_toxicity", "score the toxicity of texts, with one scorer or several side by side"
    ),
    "audit": Command(
        "parley.cli.score_audit", "measure how much toxicity scores depend on the identity named in a sentence"
    ),
    "calibrate": Command(
        "parley.cli.score_calibrate", "thresholds of a toxicity scorer for a stated miss rate, on labelled texts"
    ),
}
