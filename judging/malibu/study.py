"""MALIBU: a panel of judges scores the same answers under different identities, alone (phase 1) and in pairs (2).

    parley run malibu --suite quick

In the default design (`staged`) a neutral judge casts a silent ballot on every response under every label (`silent`);
then a panel debates a sample (`talk`): silent ballots, first ballots with reasons that are blind, and a discussion. The
design `paper` is the paper's: four judges discuss from the beginning, in its prompts. Every judge's scores of every
round are stored as verdicts. Several models judge the same units in one run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Literal

from pydantic import BaseModel

from parley.agents import ConfigError, Models, Persona, seed_from
from parley.agents.fencing import fence_judged
from parley.agents.models.registry import reads_silently
from parley.agents.models.sim import SimClient
from parley.base.text import plural
from parley.judging.ballots import about_samples, cast
from parley.judging.config import call_options, require_each_once, shipped_personas
from parley.judging.known_order import GOOD, Part
from parley.judging.malibu.analysis_plan import analysis_plan
from parley.judging.malibu.config import PAPER_ONLY, MalibuConfig
from parley.judging.malibu.panel import FACETS, FENCED, Ballot, Panel, load_panel
from parley.judging.malibu.paper import PROMPTS, PaperPanel
from parley.judging.malibu.silent import GRADED, GRADED_PAIRS, BallotSettings, SilentBallots
from parley.judging.malibu.talk import Talk
from parley.judging.malibu.yardstick import yardstick
from parley.judging.scoring.rubrics import load_rubric
from parley.judging.study import Facet, Measure, Outcome, Unit
from parley.scenarios import Identities, Scenario, aligned_directions, load_suite, select
from parley.scenarios.ballot_wordings import ENGLISH, load_ballot_wordings


class Malibu:
    """Do scores depend on who is speaking? A panel scores the same responses under different identities."""

    name: ClassVar[str] = "malibu"
    Config: ClassVar[type[BaseModel]] = MalibuConfig
    arms: ClassVar[tuple[str, ...]] = ("flaw",)
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("", "score", better="higher", scale=(0, 10)),
        Measure("preferred", "preferred", kind="choice"),
    )
    facets: ClassVar[tuple[Facet, ...]] = FACETS

    def __init__(self, config: MalibuConfig) -> None:
        whole, view = load_suite(config.suite)
        self.suite = whole.only(config.scenarios, config.per_base, config.limit)
        self.identities = select(config.identities or view.identities)
        _check_pairs(self.identities)
        self.config = config = config.in_full()
        worded = config.design != "paper"
        self.controls = view.controls if config.controls is None else config.controls
        self.phases: list[Literal[1, 2]] = config.phases or []
        require_each_once(model=config.model, phases=[str(phase) for phase in self.phases])
        for flag, key in PAPER_ONLY.items() if worded else ():
            if getattr(config, key) != MalibuConfig.model_fields[key].default:
                raise ConfigError(f"{flag} is for --design paper only")
        asked_one_by_one = bool(config.metrics) or config.rubric not in (None, "overall")
        self.rubric = load_rubric(str(config.rubric)).only(None if config.metrics == ["all"] else config.metrics)
        remark_chars = config.remark_chars or view.remark_chars
        # Each number of 1 to 9 is one token of any model; the paper's prompts ask for 0 to 10.
        scale = (1, 9) if worded else (0, 10)
        self.panel = Panel(
            judges=load_panel(config.judges or "temperaments"),
            chair=shipped_personas("malibu_chair.toml")[0] if config.consensus == "chair" else None,
            ballots={phase: Ballot(phase, self.rubric, remark_chars, config.ties, scale) for phase in (1, 2)},
            rounds=config.rounds,
            blind=config.blind,
            speaking_order=config.speaking_order,
            reasons_first=config.reasons_first,
            placement=config.personas or view.personas,
            fence=bool(config.fence),
            readout=config.readout,
            options=call_options(config.max_tokens, config.temperature),
            seed=config.seed,
        )
        self._scenarios = {scenario.id: scenario for scenario in self.suite.scenario}
        if empty := [scenario.id for scenario in self.suite.scenario if not scenario.responses]:
            listed = f"{empty[0]}, …" if len(empty) > 1 else empty[0]
            raise ConfigError(
                f"{config.suite}: {plural(len(empty), 'scenario')} without responses ({listed}): "
                f"write them with `parley run malibu-respond --suite {config.suite} --to FILE`"
            )
        if not self._scenarios:
            raise ConfigError(f"{config.suite} has no scenario to judge")
        self.silent: SilentBallots | None = None
        if worded:
            self.yardstick = yardstick(
                load_suite(view.suite)[0],
                config.yardstick,
                default=view.yardstick,
                bases=config.yardstick_bases or (view.yardstick_bases if config.yardstick is None else None),
                preferred={scenario.base for scenario in self._scenarios.values()},
            )
            wordings = load_ballot_wordings(config.wordings)
            # A suite that states no language may be in any: "en" is the default.
            if self.suite.language not in ("en", wordings.language):
                raise ConfigError(
                    f"the suite is in '{self.suite.language}' and the wordings '{wordings.name}' in "
                    f"'{wordings.language}': give --wordings in the suite's language"
                )
            self.silent = SilentBallots(
                wordings,
                BallotSettings(
                    low=scale[0],
                    high=scale[1],
                    metrics=self.rubric.metric if asked_one_by_one else (),
                    ties=config.ties,
                    wordings_per_base=config.wordings_per_base,
                    assignments=config.cells == "all",
                    samples=config.samples,
                    places=tuple(config.label_places or ()),
                    kinds=tuple(config.label_kinds or ()),
                    seed=config.seed,
                ),
                identities=self.identities,
                scenarios=self._scenarios.values(),
            )
            # A run stores its own: a pair's log-odds must not be averaged into a score, and the scale is this run's.
            self.measures = (  # type: ignore[misc]
                *(Measure(name, name.lower(), better="higher", scale=scale) for name in self.rubric.names),
                Measure("preferred", "preferred", kind="choice"),
            )
            # With a single debate, hearing another label's ballots could not be compared with anything.
            self.talk = Talk(silent=self.silent, panel=self.panel, controlled=config.debates != 1)
        else:
            self.paper = PaperPanel(
                identities=self.identities,
                scenarios=self._scenarios,
                phases=self.phases,
                controls=self.controls,
                cells=config.cells,
                repeats=config.repeats,
                panel=self.panel,
            )
            for flag, given in {
                "--wordings": config.wordings != ENGLISH or config.wordings_per_base > 1,
                "--yardstick": config.yardstick not in (None, "off"),
                "--yardstick-bases": config.yardstick_bases is not None,
            }.items():
                if given:
                    raise ConfigError(f"{flag} is for designs with silent ballots: staged, silent or talk")

    def models(self) -> list[str]:
        judges = [*self.panel.members, *(self._silent_judges if self.silent is not None else [])]
        # Where every judge has a model of its own, the study's is never called and need not exist: it is an embedded
        # one by default, with weights to fetch and load.
        shared = [] if all(judge.model for judge in judges) else self.config.model
        return list(dict.fromkeys([*shared, *(judge.model for judge in judges if judge.model)]))

    def prompts(self) -> Mapping[str, str]:
        texts = {"rubric": self.rubric.model_dump_json()}
        texts |= {FENCED.name: FENCED.text} if self.config.fence else {}
        judges = self.panel.members
        if self.silent is None:
            texts |= {prompt.name: prompt.text for prompt in PROMPTS.values()}
        else:
            texts |= self.silent.prompts()
            judges = [*self._silent_judges, *judges]
        return texts | {f"persona/{judge.name}": judge.about for judge in judges}

    def sources(self) -> Mapping[str, str]:
        suite = {f"suite {self.suite.name} {self.suite.version}": self.suite.digest()}
        return suite if self.silent is None else suite | self.yardstick.sources | self.silent.sources()

    def analysis_plan(self) -> Mapping[str, Any]:
        """What will be tested, how, and with which margin, decided before the first verdict."""
        scenarios = self._scenarios.values()
        bases = {scenario.base for scenario in scenarios}
        return analysis_plan(
            phases=self.phases,
            identities=self.identities,
            directions=aligned_directions(
                (base for base in self.suite.base if base.id in bases), self.identities.categories
            ),
            clusters=len({scenario.base or scenario.id for scenario in scenarios}),
            models=len(self.config.model),
            margin=self.config.margin,
            panel=self.panel,
            ballots="last" if self.silent is None else "blind" if self.config.design == "talk" else "silent",
        )

    def plan(self) -> Iterator[Unit]:
        """Models are the inner loop, so that an interrupted run has the same units for all of them."""
        several = len(self.config.model) > 1
        for item in self._worded_items(self.silent) if self.silent else self.paper.units():
            for model in self.config.model:
                again = self.silent.again([item], model) if self.silent and item.facets["stage"] == "silent" else ()
                for unit in (item, *again):
                    name = f"{unit.id}/@{model}" if several else unit.id
                    yield Unit(name, {**unit.facets, "model": model})

    def _worded_items(self, silent: SilentBallots) -> Iterator[Unit]:
        """Silent ballots and debates; units about one text are next to each other, so that prefixes are reused."""
        config, scenarios = self.config, list(self._scenarios.values())
        for order in self.yardstick.orders.values():
            flawed = [text for text in order.texts if text != GOOD and 2 in self.phases]
            parts = Part(name="graded", texts=order.texts), Part(name="graded-pairs", texts=flawed, paired=True)
            yield from silent.graded(order, *parts)
        if config.design != "talk":
            for scenario in scenarios:
                if 1 in self.phases:
                    yield from silent.singles(scenario, controls=self.controls)
                if 2 in self.phases:
                    yield from silent.pairs(scenario)
        debated: list[Scenario] = scenarios if config.design == "talk" else []
        phases: Sequence[int] = self.phases
        if config.design == "staged":
            phases = [phase for phase in self.phases if phase == 1]
            bases = sorted(
                {s.base or s.id for s in scenarios}, key=lambda base: seed_from("debated", config.seed, base)
            )
            chosen = bases[: config.debated_bases]
            first = {scenario.base or scenario.id: scenario for scenario in reversed(scenarios)}
            debated = [scenario for base, scenario in first.items() if base in chosen]
        most = config.debates if config.design == "staged" else None
        for repeat in range(config.repeats):
            yield from islice(
                (unit for scenario in debated for unit in self.talk.units(scenario, phases, repeat)), most
            )

    def reads_aloud(self, unit: Unit) -> bool:
        """Whether the terminal shows what is said in a unit: true for the only debate of a run."""
        return unit.facets.get("stage") == "talk" and self.config.debates == self.config.repeats == 1

    def _texts(self, unit: Unit) -> tuple[list[str], str]:
        """The response or responses of a worded unit in the order in which they are shown, and the situation."""
        texts, situation = self._plain_texts(unit)
        if self.config.fence:
            texts = [f"{FENCED.text}\n{fence_judged(text, 'RESPONSE')}" for text in texts]
        return texts, situation

    def _plain_texts(self, unit: Unit) -> tuple[list[str], str]:
        facets = unit.facets
        phase = int(facets["phase"])
        if phase in (GRADED, GRADED_PAIRS):
            order = self.yardstick.orders[str(facets["base"])]
            text = str(facets["flaw"]), int(facets["dose"])
            return order.shown(text, str(facets.get("flawed", ""))), order.scenario.text
        scenario = self._scenarios[str(facets["scenario"])]
        assert scenario.responses, "a suite without responses is refused"
        if phase == 1:
            return [scenario.responses[0]], scenario.text
        return [scenario.responses[int(facets[f"response_{side}"]) - 1] for side in "ab"], scenario.text

    def task(self, unit: Unit) -> str:
        """The prompt that opens the unit's conversation."""
        facets = unit.facets
        if self.silent is not None:
            texts, situation = self._texts(unit)
            if facets["stage"] == "talk":
                return self.talk.task(unit, texts, situation)
            return self.silent.ballots(unit, texts, situation)[0].question
        return self.paper.task(unit)

    def notes(self, *, dry_run: bool) -> Iterator[str]:
        """Lines on sampled ballots, on wordings, and in a dry run filled wordings and what else could be asked."""
        if self.silent is None:
            return
        yield from (about_samples(model, self.config.samples) for model in self.models() if not reads_silently(model))
        yield from self.silent.about_own_labels(in_full=dry_run)
        yield from self.silent.cautions()
        if dry_run and not self.silent.settings.metrics:
            four = len(load_rubric("four").metric)
            yield (
                f"silent ballots ask one question about the whole answer; --metrics all asks for {four} metrics, "
                "one call each"
            )

    @property
    def _silent_judges(self) -> list[Persona]:
        """Who casts the ballots that no debate follows: one neutral judge, unless a panel was chosen.

        The judges' temperaments add little: the variance between them was 0.001.
        """
        assert self.silent is not None
        return [self.silent.judge] if self.config.judges is None else list(self.panel.judges)

    async def _run_worded(self, silent: SilentBallots, unit: Unit, models: Models) -> Outcome:
        texts, situation = self._texts(unit)
        client = models[str(unit.facets["model"])]
        own = (models[judge.model] for judge in self.panel.judges if judge.model)
        for simulated in (client, *own):
            if isinstance(simulated, SimClient):
                simulated.label_words = silent.label_words
        if unit.facets["stage"] == "talk":
            return await self.talk.run(unit, texts, situation, models)
        return await cast(
            self._silent_judges,
            silent.ballots(unit, texts, situation),
            str(unit.facets["model"]),
            models,
            options=self.panel.options,
            placement=self.panel.placement,
        )

    async def run(self, unit: Unit, models: Models) -> Outcome:
        if self.silent is not None:
            return await self._run_worded(self.silent, unit, models)
        return await self.paper.run(unit, models)


def _check_pairs(identities: Identities) -> None:
    """Every pair needs its own name in unit ids; labels may contain hyphens, so names could clash."""
    names = [f"{x}-{y}" for x, y in [*identities.pairs(), *((label, label) for label in identities)]]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"two pairs of labels would both be called '{twice}': rename a label")
