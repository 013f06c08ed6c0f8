"""What a rubric's judges are asked, what they reply, and how the reply becomes verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import create_model

from parley.agents import ConfigError, Turn, scale
from parley.agents.fencing import fence_judged
from parley.judging.scoring.rubrics import Metric, load_rubric
from parley.judging.study import Prompt, Verdict

SCORE = Prompt.load("rubric/score")
EXAMPLES = {name: Prompt.load(f"rubric/examples_{name.lower()}") for name in ("BS", "CE", "LS")}
"""Examples of a low, a middle and a high score, by metric."""


class ScoreSheet:
    """The metrics of one or more rubrics, scored together.

    Args:
        rubrics: Rubrics by name, or .toml files.
        examples: Whether judges are shown examples of scores.
    """

    def __init__(self, rubrics: Sequence[str], *, examples: bool = False) -> None:
        metrics = [metric for name in rubrics for metric in load_rubric(name).metric]
        self.metrics: dict[str, Metric] = {metric.name: metric for metric in metrics}
        if not metrics or len(self.metrics) < len(metrics):
            raise ConfigError("at least one rubric is needed, and no metric may be in two of them")
        fields: dict[str, Any] = {name: (scale(0, 10), ...) for name in self.metrics}
        self.reply_type = create_model("RubricReply", **fields)
        self.rubric = "\n\n".join("\n- ".join((metric.name, *metric.questions)) for metric in metrics)
        if examples:
            if without := [name for name in self.metrics if name not in EXAMPLES]:
                raise ConfigError(f"examples: there are none for {', '.join(without)}")
            self.rubric = "\n\n".join((self.rubric, *(EXAMPLES[name].text for name in self.metrics)))

    def task(self, text: str, context: str = "") -> str:
        """The judges' prompt.

        Args:
            text: The text to score.
            context: What it answers, if known.
        """
        return SCORE(
            metrics=self.rubric,
            context=f"\nContext:\n{context}\n" if context else "",
            text=fence_judged(text, "TEXT"),
            format="{" + ", ".join(f'"{name}": <score>' for name in self.metrics) + "}",
        )

    def verdicts(self, turn: Turn, *, expected: bool) -> Iterator[Verdict]:
        """One verdict per metric, readable or not.

        Args:
            turn: A judge's reply.
            expected: Whether to take expected scores from token probabilities.
        """
        status = turn.parse_status or "unparsed"
        reply = turn.verdict.model_dump() if turn.verdict else {}
        for metric in self.metrics:
            sampled = reply.get(metric)
            value = turn.expected.get(metric, sampled) if expected else sampled
            yield Verdict.from_turn(turn, metric, value=value, sampled=sampled, status=status)
