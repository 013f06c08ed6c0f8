"""RLAIF's pairs, the baseline without a debate: a model answers a topic twice, and another says which answer shows less
bias.

    parley run rlaif --topics-from topics.txt --model local/trained/sft --labeller openai/gpt-6-luna

The labeller sees the answers in both orders. A pair counts if the label is the same both times; otherwise, or if
a label is unreadable, there is no pair, and the report has the number of such cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field

from parley.agents import DEFAULT_MODEL, Debate, Models, ParseStatus, Persona, Transcript, Turn
from parley.agents.fencing import fence_judged
from parley.judging import Advanced, Apart, Measure, Outcome, Prompt, Verdict
from parley.judging.config import limit_field
from parley.judging.grid import GridStudy, varies
from parley.judging.rldf.answers import ANSWERER, NEUTRAL
from parley.scenarios import load_topics, topic_id, topics_digest

LABEL = Prompt.load("rlaif/label", "rldf")
LABELLER = Persona("Labeller", "")


class RlaifPairsConfig(BaseModel, extra="forbid", frozen=True):
    """All settings that change the pairs."""

    topics_from: str = Field("age", description="bias type, or a .txt file of topics")
    limit: int | None = limit_field("number of topics: the first of the list")
    model: str = Field(DEFAULT_MODEL, description="model that answers, as provider/model")
    labeller: str | None = Field(
        None, title="MODEL", description="model that says which answer shows less bias (default: --model)"
    )
    pairs: int = Field(1, ge=1, description="pairs of answers per topic")
    temperature: float = Field(1.0, ge=0, le=2, description="sampling temperature of the answers")
    max_tokens: Advanced[int] = Field(160, ge=16, description="maximum length of an answer, in tokens")
    seed: Apart[int] = Field(0, description="random seed")


class Label(BaseModel):
    less_biased: Literal["A", "B", "tie"]

    FORMAT: ClassVar[str] = '{"less_biased": "<A, B or tie>"}'


@dataclass(frozen=True, kw_only=True)
class PairCell:
    """Two answers to one topic."""

    topic: str = varies("text", "{}")
    topic_id: str = varies("technical")
    pair: int = varies("count", "pair {}", silent="0")


class Rlaif(GridStudy):
    """Pairs without a debate: a model answers twice, another says which answer shows less bias."""

    name = "rlaif"
    Config = RlaifPairsConfig
    measures = (Measure("agreed", "labels agree", better="higher", scale=(0, 1)),)
    Cell = PairCell

    def __init__(self, config: RlaifPairsConfig) -> None:
        self.config: RlaifPairsConfig = config
        self._labeller = config.labeller or config.model
        self._listed = load_topics(config.topics_from)
        self._topics = {topic_id(topic): topic for topic in self._listed[: config.limit]}

    def models(self) -> list[str]:
        return list(dict.fromkeys([self.config.model, self._labeller]))

    def prompts(self) -> Mapping[str, str]:
        return {prompt.name: prompt.text for prompt in (NEUTRAL, LABEL)}

    def sources(self) -> Mapping[str, str]:
        return {f"topics {self.config.topics_from}": topics_digest(self._listed)}

    def cells(self) -> Iterator[tuple[str, PairCell]]:
        for pair in range(self.config.pairs):
            for key, topic in self._topics.items():
                yield f"{key}/p{pair}", PairCell(topic=topic, topic_id=key, pair=pair)

    async def ask(self, cell: PairCell, models: Models) -> Outcome:
        config, question = self.config, NEUTRAL(topic=cell.topic)
        options = {"max_tokens": config.max_tokens, "temperature": config.temperature}
        turns: list[Turn] = []
        answers: list[Turn] = []
        for number in (1, 2):
            debate = Debate([ANSWERER], model=models[config.model], rounds=1, options=options, models=models)
            transcript = await debate.converse(question)
            turns += [turn._replace(round=number) for turn in transcript.turns]
            answers.append(turns[-1])
        texts = [turn.text.strip() for turn in answers]
        replies: list[Turn] = []
        labels: list[float | None] = []
        statuses: list[ParseStatus] = []
        for number, (a, b) in enumerate(((0, 1), (1, 0)), 3):
            debate = Debate(
                [LABELLER],
                model=models[self._labeller],
                rounds=1,
                reply_type=LABEL.reads(Label),
                options={"max_tokens": 60, "temperature": 0.0},
                models=models,
            )
            prompt = LABEL(
                question=question,
                a=fence_judged(texts[a], "ANSWER A"),
                b=fence_judged(texts[b], "ANSWER B"),
                format=Label.FORMAT,
            )
            transcript = await debate.converse(prompt)
            turns += [turn._replace(round=number) for turn in transcript.turns]
            replies.append(turns[-1])
            labels.append(_place(turns[-1], (a, b)))
            unread = turns[-1].parse_status in (None, "ok", "repaired") and labels[-1] is None
            statuses.append("unparsed" if unread else turns[-1].parse_status or "ok")
        verdicts = _verdicts(answers, replies, labels, statuses)
        return Outcome(Transcript(tuple(turns), "labelled twice"), tuple(verdicts))


def _place(label: Turn, order: tuple[int, int]) -> float | None:
    """The answer labelled less biased: the first (0), the second (1) or neither (0.5). `order`: shown as A, B."""
    letter = getattr(label.verdict, "less_biased", None)
    return {"A": float(order[0]), "B": float(order[1]), "tie": 0.5}.get(letter) if isinstance(letter, str) else None


def _verdicts(
    answers: list[Turn], replies: list[Turn], labels: list[float | None], statuses: list[ParseStatus]
) -> Iterator[Verdict]:
    for turn in answers:
        yield Verdict.from_turn(turn, "answer", subject=str(turn.round), text=turn.text.strip())
    labeller: dict[str, Any] = {"judge": LABELLER.name, "role": "evaluator"}
    for reply, label, status in zip(replies, labels, statuses, strict=True):
        yield Verdict(round=reply.round, metric="label", value=label, status=status, turn=reply, **labeller)
    labeller |= {"round": replies[-1].round, "turn": replies[-1]}
    labelled = [label for label in labels if label is not None]
    if len(labelled) < 2:
        lost = next(status for label, status in zip(labels, statuses, strict=True) if label is None)
        yield Verdict(metric="agreed", status=lost, **labeller)
        return
    different = answers[0].text.strip() != answers[1].text.strip()
    agreed = different and (labelled[0] - 0.5) * (labelled[1] - 0.5) > 0
    yield Verdict(metric="agreed", value=float(agreed), **labeller)
    yield Verdict(metric="preference", value=sum(labelled) / 2 if agreed else 0.5, **labeller)
