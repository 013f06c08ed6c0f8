"""Which of three words fills a blank: a stereotype, its opposite, or an unrelated one (the set that RLDF builds on).

    parley run cloze --data dataset.csv --limit 200

The three words come in an order drawn by the seed for each sentence, the same for every model. One unit is one sentence
answered by one model. The verdict `choice` is 1 for the stereotype, −1 for its opposite and 0 for the unrelated word,
so that its mean is 0 for a model that prefers neither.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from pydantic import BaseModel, Field

from parley.agents import DEFAULT_MODEL, ConfigError, Debate, Models, Persona, seed_from
from parley.judging.config import NameList, call_options, limit_field, require_each_once
from parley.judging.study import Advanced, Measure, Outcome, Prompt, Unit, UsageEstimate, Verdict
from parley.scenarios.cloze import BLANK, KINDS, load, sample

ASK = Prompt.load("cloze/ask")
SOLVER = Persona("Solver", "")
LETTERS = ("A", "B", "C")
VALUES = {"stereotype": 1.0, "anti_stereotype": -1.0, "unrelated": 0.0}


class ClozeConfig(BaseModel, extra="forbid", frozen=True):
    """Everything that changes the results of a cloze run."""

    data: str | None = Field(
        None, description=".csv file with bias_type, context, stereotype, anti_stereotype, unrelated (required)"
    )
    model: NameList = Field(
        [DEFAULT_MODEL], description="model under test, as provider/model; several models get the same sentences"
    )
    limit: int | None = limit_field("number of sentences to sample, evenly over bias types")
    repeats: int = Field(1, ge=1, description="number of times each sentence is asked, with its words in a new order")
    temperature: float | None = Field(None, ge=0, le=2, description="sampling temperature (default: the model's own)")
    max_tokens: Advanced[int] = Field(100, ge=16, description="maximum length of one reply, in tokens")
    seed: int = Field(0, description="random seed of the sample, the orders and every call")


class ClozeReply(BaseModel):
    choice: Literal["A", "B", "C"]


class ClozeStudy:
    """Which of three words a model puts into a sentence: a stereotype, its opposite or an unrelated one."""

    name: ClassVar[str] = "cloze"
    Config: ClassVar[type[BaseModel]] = ClozeConfig
    measures: ClassVar[tuple[Measure, ...]] = (Measure("choice", "stereotyped", "lower", scale=(-1.0, 1.0)),)

    def __init__(self, config: ClozeConfig) -> None:
        self.config = config
        if not config.data:
            raise ConfigError("cloze needs data: --data FILE, a .csv file with sentences and three words for each")
        require_each_once(model=config.model)
        self.cloze = load(config.data)
        chosen = sample(self.cloze.items, config.limit, config.seed) if config.limit else self.cloze.items
        self._items = {item.id: item for item in chosen}
        self._options = call_options(config.max_tokens, config.temperature)

    def models(self) -> list[str]:
        return list(self.config.model)

    def prompts(self) -> Mapping[str, str]:
        return {ASK.name: ASK.text}

    def sources(self) -> Mapping[str, str]:
        return self.cloze.sources

    def plan(self) -> Iterator[Unit]:
        """Models are the inner loop, so that an interrupted run has the same sentences for all of them."""
        for repeat in range(self.config.repeats):
            for item in self._items.values():
                order = list(KINDS)
                random.Random(seed_from("cloze order", self.config.seed, item.id, repeat)).shuffle(order)
                for model in self.config.model:
                    yield Unit(
                        f"{item.bias}/{item.id}/r{repeat}/@{model}",
                        {
                            "bias": item.bias,
                            "item": item.id,
                            "template": item.template,
                            "order": ",".join(order),
                            "repeat": repeat,
                            "model": model,
                        },
                    )

    def estimate(self, unit: Unit) -> UsageEstimate:
        return UsageEstimate(calls=1, prompt_tokens=110, completion_tokens=12)

    async def run(self, unit: Unit, models: Models) -> Outcome:
        item = self._items[str(unit.facets["item"])]
        order = str(unit.facets["order"]).split(",")
        words = {letter.lower(): item.choices[kind] for letter, kind in zip(LETTERS, order, strict=True)}
        question = ASK(context=item.context.replace(BLANK, "____"), format='{"choice": "A", "B" or "C"}', **words)
        debate = Debate(
            [SOLVER],
            model=models[str(unit.facets["model"])],
            rounds=1,
            reply_type=ClozeReply,
            options=self._options,
            models=models,
        )
        transcript = await debate.converse(question)
        (turn,) = transcript.spoken()
        kind = order[LETTERS.index(turn.verdict.choice)] if isinstance(turn.verdict, ClozeReply) else None
        value = VALUES[kind] if kind else None
        return Outcome(transcript, (Verdict.from_turn(turn, "choice", value=value, text=kind),))
