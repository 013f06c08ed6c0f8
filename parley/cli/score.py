"""`parley score bbq|squad|rubric|toxicity|audit`: answers and texts of anyone's, scored, and scorers audited."""

from __future__ import annotations

from typing import Any


def add_to(commands: Any) -> None:
    from parley.cli import score_audit, score_bbq, score_rubric, score_squad, score_toxicity

    verbs = _verbs(commands)
    score_bbq.add_to(verbs)
    score_squad.add_to(verbs)
    score_rubric.add_to(verbs)
    score_toxicity.add_to(verbs)
    score_audit.add_to(verbs)


def add_bbq(commands: Any) -> None:
    """BBQ alone: nothing of the conversations is loaded, so that scoring all of it takes seconds."""
    from parley.cli import score_bbq

    score_bbq.add_to(_verbs(commands))


def add_squad(commands: Any) -> None:
    """SQuAD alone, for the same reason."""
    from parley.cli import score_squad

    score_squad.add_to(_verbs(commands))


def _verbs(commands: Any) -> Any:
    parser = commands.add_parser("score", help="score answers and texts from a file")
    return parser.add_subparsers(dest="verb", required=True, metavar="KIND")
