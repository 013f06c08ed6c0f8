"""MALIBU's designs with silent ballots: what is read silently, and what is debated after that.

In the design `silent` a neutral judge casts a ballot on every response under every label; in `staged` a panel then
debates a sample, and in `talk` everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from parley.agents import ConfigError, Models, Persona, seed_from
from parley.agents.fencing import fence_judged
from parley.agents.models.registry import reads_silently
from parley.judging.ballots import about_samples, cast_ballots
from parley.judging.malibu.cell import GRADED, TALK, MalibuCell
from parley.judging.malibu.config import LABELS_AFTER, PAPER_ONLY, MalibuConfig
from parley.judging.malibu.panel import FENCED, Panel
from parley.judging.malibu.silent import BallotSettings, SilentBallots, yardstick
from parley.judging.malibu.talk import Talk
from parley.judging.rubric.rubrics import Rubric, load_rubric
from parley.judging.study import Outcome
from parley.scenarios import Identities, Scenario, Suite
from parley.scenarios.ballot_wordings import load_ballot_wordings


class WordedDesign:
    """Silent ballots and the debates after them, in the words of a file of wordings.

    Args:
        config: The run's settings.
        panel: Who debates.
        identities: The labels of the run.
        suite: What is judged.
        graded: The suite with the graded responses; the run may be on a part of it.
    """

    def __init__(self, config: MalibuConfig, panel: Panel, identities: Identities, suite: Suite, graded: Suite) -> None:
        for flag, key in PAPER_ONLY.items():
            if getattr(config, key) != MalibuConfig.model_fields[key].default:
                raise ConfigError(f"{flag} is for --design paper only")
        self._config, self._panel = config, panel
        self._scenarios = {scenario.id: scenario for scenario in suite.scenario}
        self.yardstick = yardstick(
            graded,
            config.yardstick,
            bases=config.yardstick_bases,
            preferred={scenario.base for scenario in suite.scenario},
        )
        wordings = load_ballot_wordings(config.wordings)
        # A suite that states no language may be in any: "en" is the default.
        if suite.language not in ("en", wordings.language):
            raise ConfigError(
                f"the suite is in '{suite.language}' and the wordings '{wordings.name}' in "
                f"'{wordings.language}': give --wordings in the suite's language"
            )
        rubric = panel.ballots[1].rubric
        self.silent = SilentBallots(
            wordings,
            BallotSettings(
                metrics=rubric.metric if config.metrics or config.rubric != "overall" else (),
                ties=config.ties,
                assignments=config.cells == "all",
                samples=config.samples,
                labels_after=config.suite in LABELS_AFTER,
                seed=config.seed,
            ),
            identities=identities,
            scenarios=suite.scenario,
        )
        # With a single debate, hearing another label's ballots could not be compared with anything.
        self.talk = Talk(
            silent=self.silent,
            panel=panel,
            controlled=config.debates != 1,
            one_order=config.design == "staged" and config.cells == "one",
        )

    @property
    def compared(self) -> Rubric:
        """What debates of pairs score; silent ballots ask for a preference only."""
        return self._panel.ballots[2].rubric

    @property
    def judges(self) -> list[Persona]:
        """Who casts the ballots that no debate follows: one neutral judge, unless a panel was chosen.

        The judges' temperaments add little: the variance between them was 0.001.
        """
        return [self.silent.judge] if self._config.judges is None else list(self._panel.judges)

    def prompts(self) -> Mapping[str, str]:
        return self.silent.prompts()

    def sources(self) -> Mapping[str, str]:
        return self.yardstick.sources | self.silent.sources()

    def cells(self) -> Iterator[MalibuCell]:
        """Silent ballots and debates; cells about one text are next to each other, so that prefixes are reused."""
        config, scenarios = self._config, list(self._scenarios.values())
        for order in self.yardstick.orders.values():
            yield from self.silent.graded(order)
        if config.design == "talk":
            yield from self._debates(scenarios, config.phases)
            return
        for scenario in scenarios:
            if 1 in config.phases:
                yield from self.silent.singles(scenario, controls=config.controls)
            if 2 in config.phases:
                yield from self.silent.pairs(scenario)
        if config.design == "staged":
            yield from self._debates(self._drawn(scenarios), config.phases, config.debates)

    def _drawn(self, scenarios: Sequence[Scenario]) -> list[Scenario]:
        """The first scenario of each of the bases that are drawn for debates."""
        first = {scenario.base or scenario.id: scenario for scenario in reversed(scenarios)}
        drawn = sorted(first, key=lambda base: seed_from("debated", self._config.seed, base))
        chosen = drawn[: self._config.debated_bases]
        return [scenario for base, scenario in first.items() if base in chosen]

    def _debates(
        self, scenarios: Sequence[Scenario], phases: Sequence[int], most: int | None = None
    ) -> Iterator[MalibuCell]:
        for repeat in range(self._config.repeats):
            cells = (cell for scenario in scenarios for cell in self.talk.cells(scenario, phases, repeat))
            yield from islice(cells, most)

    def notes(self, models: Sequence[str], *, dry_run: bool) -> Iterator[str]:
        """Lines on sampled ballots, on wordings, and in a dry run filled wordings and what else could be asked."""
        yield from (about_samples(model, self._config.samples) for model in models if not reads_silently(model))
        yield from self.silent.about_own_labels(in_full=dry_run)
        yield from self.silent.cautions()
        if dry_run and not self.silent.settings.metrics:
            four = len(load_rubric("four").metric)
            yield (
                f"silent ballots ask one question about the whole answer; --metrics all asks for {four} metrics, "
                "one call each"
            )

    def _texts(self, cell: MalibuCell) -> tuple[list[str], str]:
        """The response or responses of a cell in the order in which they are shown, and the situation."""
        if cell.phase == GRADED:
            order = self.yardstick.orders[cell.base]
            scenario = order.scenario
            texts = [order.texts[cell.flaw or "", cell.dose or 0]]
        else:
            scenario = self._scenarios[cell.scenario]
            texts = [scenario.responses[number - 1] for number in cell.responses]
        if self._config.fence:
            texts = [f"{FENCED.text}\n{fence_judged(text, 'RESPONSE')}" for text in texts]
        return texts, scenario.text

    def task(self, cell: MalibuCell) -> str:
        """The prompt that opens the cell's conversation."""
        if cell.stage == TALK:
            return self.talk.task(cell, *self._texts(cell))
        return self.silent.ballots(cell, *self._texts(cell))[0].question

    async def ask(self, cell: MalibuCell, models: Models) -> Outcome:
        """Cast a cell's ballots, and hold its debate if it has one."""
        if cell.stage == TALK:
            return await self.talk.ask(cell, *self._texts(cell), models)
        ballots, panel = self.silent.ballots(cell, *self._texts(cell)), self._panel
        return await cast_ballots(
            self.judges, ballots, cell.model, models, options=panel.options, placement=panel.placement
        )
