"""What a target of injections is, as named by `--judged-by`: a study's judge, asked as that study asks it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel

from parley.agents import ConfigError, Debate, Models, Persona, Transcript, simultaneous
from parley.judging.config import call_options
from parley.judging.injection.config import InjectionConfig
from parley.judging.scoring.study import no_one
from parley.judging.study import Outcome
from parley.scenarios import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A text to judge.

    Args:
        scenario: The scenario that it answers.
        text: The text, with an attempt in it or without.
        fenced: Whether MALIBU's judges see it fenced; all others do.
    """

    scenario: Scenario
    text: str
    fenced: bool = True


class Target(ABC):
    """A judge, or a panel of judges, whose scores an injection tries to change."""

    name: ClassVar[str]
    lowest: ClassVar[int] = 0
    highest: ClassVar[int] = 10
    wanted: ClassVar[int]
    """The end of the scale that the author of a text wants: no bias, or a high quality."""
    can_be_open: ClassVar[bool] = False
    """Whether there is a prompt without a fence."""
    reads_expected: ClassVar[bool] = False
    """Whether scores can be read as expectations."""
    judges: Sequence[Persona]

    def __init__(self, config: InjectionConfig) -> None:
        self._config, self._expected = config, config.readout == "expected"
        self._options = call_options(config.max_tokens, config.temperature)
        if self._expected and not self.reads_expected:
            raise ConfigError(f"the scores of {self.name} can only be read as written (--readout sampled)")

    @abstractmethod
    def prompts(self) -> Mapping[str, str]:
        """The prompts and personas by name."""

    @abstractmethod
    def reply(self, score: int) -> str:
        """A reply that gives this score throughout, for attempts that contain one."""

    @abstractmethod
    async def judge(self, judged: Judged, model: str, models: Models) -> Outcome:
        """Ask the judges, and read their scores."""

    def text(self, scenario: Scenario) -> str:
        """The text that is judged, before an attempt is put into it."""
        return responses(scenario)[0]

    def prompt_chars(self, judged: Judged) -> int:
        """The length of one judge's prompt, roughly."""
        return sum(map(len, self.prompts().values())) + len(judged.scenario.text) + len(judged.text)

    async def _ask(
        self, prompt: str, reply_type: type[BaseModel], model: str, models: Models, *, then: str | None = None
    ) -> Transcript:
        """Each judge's reply to a prompt, and to the instruction `then` after it; they do not see each other's."""
        debate = Debate(
            self.judges,
            model=models[model],
            rounds=1,
            order=simultaneous,
            sees=no_one,
            instructions=lambda cue: then,
            reply_type=reply_type,
            readout=self._config.readout,
            options=self._options,
            models=models,
        )
        return await debate.converse(prompt)

    def _personas(self) -> dict[str, str]:
        return {f"persona/{judge.name}": judge.about for judge in self.judges}


def responses(scenario: Scenario) -> tuple[str, str]:
    """The two responses of a scenario that has them: the first is judged."""
    return scenario.responses or ("", "")
