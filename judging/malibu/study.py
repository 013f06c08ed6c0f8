"""MALIBU: a panel of judges scores the same answers under different identities, singly (phase 1) and in pairs (2).

    parley run malibu --suite quick

In the default design (`staged`) a neutral judge casts a silent ballot on every response under every label (`silent`);
then a panel debates a sample (`talk`): silent ballots, blind first ballots with reasons, and a discussion. The
design `paper` is the paper's: four judges discuss from the beginning, in its prompts. Every judge's scores of every
round are stored as verdicts. Several models judge the same units in one run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from pydantic import BaseModel

from parley.agents import ConfigError, Cue, Models, Persona, seed_from
from parley.agents.fencing import fence_judged
from parley.agents.models.registry import reads_silently
from parley.analysis.stats.results import ALPHA, Contrast, clusters_to_reject, needed_words
from parley.base.text import plural
from parley.judging import Measure, Outcome, Prompt
from parley.judging.ballots import about_samples, cast_ballots
from parley.judging.config import call_options, require_each_once, shipped_personas
from parley.judging.grid import GridStudy
from parley.judging.malibu.panel import FENCED, Ballot, Panel, Talk, candidate, load_panel, show_candidate
from parley.judging.malibu.plan import (
    CHOSEN,
    GRADED,
    LABELS_AFTER,
    PAPER_ONLY,
    PLACEBO_TABLE,
    PLANNED,
    PRIMARY_CONTRASTS,
    TABLES,
    TALK,
    MalibuCell,
    MalibuConfig,
    Plan,
    demonstrates,
    sides,
)
from parley.judging.malibu.silent import HIGHEST, LOWEST, NO_LABELS, BallotSettings, SilentBallots, yardstick
from parley.judging.malibu.size import size_table
from parley.judging.rubric.rubrics import Rubric, load_rubric
from parley.scenarios import Identities, Scenario, Suite, load_suite, select
from parley.scenarios.ballot_wordings import ENGLISH, load_ballot_wordings


class WordedDesign:
    """Silent ballots and the debates after them, with a file of wordings.

    Args:
        config: The run's settings.
        panel: The debaters.
        identities: The labels of the run.
        suite: The scenarios.
        graded: The suite with the graded responses; the run may be on a part of it.
        placebo: Placebo labels, which are only scored in silent ballots.
    """

    def __init__(
        self,
        config: MalibuConfig,
        panel: Panel,
        identities: Identities,
        suite: Suite,
        graded: Suite,
        placebo: Identities = NO_LABELS,
    ) -> None:
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
        # A suite without a language may be in any language: "en" is the default.
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
            placebo=placebo if config.design != "talk" and 1 in config.phases and wordings.placebo else NO_LABELS,
        )
        one_order = config.design == "staged" and config.cells == "one"
        self.talk = Talk(silent=self.silent, panel=panel, one_order=one_order)

    @property
    def compared(self) -> Rubric:
        """The metrics of debates of pairs; silent ballots ask only for a preference."""
        return self._panel.ballots[2].rubric

    @property
    def judges(self) -> list[Persona]:
        """The judges of ballots without a debate: one neutral judge, unless a panel was chosen.

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
                yield from self.silent.singles(scenario, controls=config.controls, placebo=True)
            if 2 in config.phases:
                yield from self.silent.pairs(scenario)
        if config.design == "staged":
            yield from self._debates(self._drawn(scenarios), config.phases, config.debates)

    def _drawn(self, scenarios: Sequence[Scenario]) -> list[Scenario]:
        """The first scenario of each base drawn for debates."""
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
        """Notes on sampled ballots and on wordings; in a dry run also example wordings and alternatives."""
        yield from (about_samples(model, self._config.samples) for model in models if not reads_silently(model))
        yield from self.silent.about_own_labels(in_full=dry_run)
        yield from self.silent.cautions()
        if not self.yardstick.orders and self._config.yardstick != "off":
            yield "no graded answers: this run cannot show whether its judges can judge"
        second = sum(len(scenario.responses) > 1 for scenario in self._scenarios.values())
        if dry_run and second and 1 in self._config.phases:
            read = "are read in pairs only" if 2 in self._config.phases else "are not read (--phases 1)"
            yield f"scores are of each scenario's first response; the {plural(second, 'second response')} {read}"
        if dry_run and not self.silent.settings.metrics:
            four = len(load_rubric("four").metric)
            yield (
                f"silent ballots ask one question about the whole answer; --metrics all asks for {four} metrics, "
                "one call each"
            )

    def _texts(self, cell: MalibuCell) -> tuple[list[str], str]:
        """The responses of a cell, in the order shown, and the situation."""
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


PROMPTS = {
    key: Prompt.load(f"malibu/{key}")
    for key in ("single", "pair", "pair_inferred", "single_discuss", "pair_discuss", "chair")
}


class PaperDesign:
    """The cells of a run in the paper's design.

    Args:
        config: The run's settings.
        panel: The panel.
        identities: The labels of the run.
        suite: What is judged.
    """

    judges: Sequence[Persona] = ()
    """Only the panel judges."""

    def __init__(self, config: MalibuConfig, panel: Panel, identities: Identities, suite: Suite) -> None:
        for flag, given in {
            "--wordings": config.wordings != ENGLISH,
            "--yardstick": config.yardstick not in (None, "off"),
            "--yardstick-bases": config.yardstick_bases is not None,
        }.items():
            if given:
                raise ConfigError(f"{flag} is for designs with silent ballots: staged, silent or talk")
        self._config, self._panel, self._identities = config, panel, identities
        self._scenarios = {scenario.id: scenario for scenario in suite.scenario}

    def prompts(self) -> Mapping[str, str]:
        return {prompt.name: prompt.text for prompt in PROMPTS.values()}

    def sources(self) -> Mapping[str, str]:
        return {}

    def notes(self, models: Sequence[str], *, dry_run: bool) -> Iterator[str]:
        yield from ()

    def cells(self) -> Iterator[MalibuCell]:
        """Every scenario's singles and pairs."""
        for repeat in range(self._config.repeats):
            for scenario in self._scenarios.values():
                if 1 in self._config.phases:
                    for label in [*self._identities, *([""] if self._config.controls else [])]:
                        control = "" if label else "no label"
                        yield self._cell(1, scenario, repeat, label, identity=label, control=control)
                if 2 in self._config.phases:
                    yield from self._pairs(scenario, repeat)

    def _cell(self, phase: int, scenario: Scenario, repeat: int, label: str, **more: Any) -> MalibuCell:
        category = self._identities.category_of(label)
        return MalibuCell(
            phase=phase, scenario=scenario.id, base=scenario.base, category=category, repeat=repeat, **more
        )

    def _pairs(self, scenario: Scenario, repeat: int) -> Iterator[MalibuCell]:
        compared = [(x, y, "") for x, y in self._identities.pairs()]
        if self._config.controls:
            compared += [("", "", "no label")] + [(x, x, "same label") for x in self._identities]
        for x, y, control in compared:
            yield from self._assigned(scenario, x, y, control, repeat)

    def _assigned(self, scenario: Scenario, x: str, y: str, control: str, repeat: int) -> Iterator[MalibuCell]:
        # With equal labels, swapping them changes nothing: two of the four cells remain.
        cells = [(0, 0), (0, 1)] if control else [(0, 0), (0, 1), (1, 0), (1, 1)]
        if self._config.cells == "one":
            cells = [cells[seed_from(self._panel.seed, scenario.id, x, y, repeat) % len(cells)]]
        for assignment, order in cells:
            yield self._cell(2, scenario, repeat, x, control=control, **sides(x, y, assignment, order))

    def task(self, cell: MalibuCell) -> str:
        """The prompt that opens the cell's conversation."""
        panel, scenario = self._panel, self._scenarios[cell.scenario]
        assert scenario.responses, "a suite without responses is refused"
        ballot = panel.ballots[cell.phase]
        shown: dict[str, str] = {}
        for side, label, number in zip(
            ("",) if cell.phase == 1 else ("a", "b"), cell.labels, cell.responses, strict=True
        ):
            name = candidate(f" {side.upper()}" if side else "", label)
            text = show_candidate(scenario.responses[number - 1], name, fenced=panel.fence)
            key = f"_{side}" if side else ""
            shown |= {f"candidate{key}": text.candidate, f"response{key}": text.response}
        pair = "pair" if ballot.rubric.preference == "stated" else "pair_inferred"
        return PROMPTS["single" if cell.phase == 1 else pair](
            **shown,
            scenario=scenario.text,
            metrics=ballot.rubric.text(),
            format=ballot.format(with_remark=panel.reasons_first),
            choices=ballot.choices,
        )

    async def ask(self, cell: MalibuCell, models: Models) -> Outcome:
        """Let the panel talk about one cell."""
        panel = self._panel
        ballot = panel.ballots[cell.phase]

        def prompt(cue: Cue) -> Prompt:
            first = "pair" if ballot.rubric.preference == "stated" else "pair_inferred"
            keys = ("single", "single_discuss") if ballot.phase == 1 else (first, "pair_discuss")
            return PROMPTS["chair" if cue.role == "chair" else keys[cue.round > 1]]

        def instructions(cue: Cue) -> str | None:
            opened = cue.role != "chair" and cue.round == 1
            return None if opened else prompt(cue)(format=ballot.format(with_remark=cue.role != "chair"))

        def reply_type(cue: Cue) -> type[BaseModel]:
            """A ballot's type. In phase 1 it has reasons only in a discussion or if requested, in phase 2 always."""
            with_remark = cue.role != "chair" and (cue.round > 1 or panel.reasons_first)
            return prompt(cue).reads(ballot.reply_type(with_remark=with_remark))

        debate = panel.debate(
            cell.id,
            cell.model,
            models,
            chair=panel.chair,
            instructions=instructions,
            reply_type=reply_type,
        )
        transcript = await debate.converse(self.task(cell))
        return Outcome(transcript, tuple(v for turn in transcript.spoken() for v in ballot.verdicts(turn)))


PREFERRED = Measure("preferred", "preferred", kind="choice")
BALLOTS = {"paper": "last", "talk": "blind"}
"""The ballots that the analysis uses, if not the silent ones."""


class Malibu(GridStudy):
    """Do scores depend on who is speaking? A panel scores the same responses under different identities."""

    name = "malibu"
    Config = MalibuConfig
    report = "parley.judging.malibu.report:report"
    papers = ("Mirza et al., 2025",)
    comparable = "parley.judging.malibu.score_table:comparable"
    claims = "parley.judging.malibu.claims:claimed_values"
    measures: tuple[Measure, ...] = (Measure("", "score", better="higher", scale=(0, 10)), PREFERRED)
    Cell = MalibuCell

    def __init__(self, config: MalibuConfig) -> None:
        require_each_once(model=config.model, phases=[str(phase) for phase in config.phases])
        self.config: MalibuConfig = config
        whole, view = load_suite(config.suite)
        self.suite = whole.only(config.scenarios, config.per_base, config.limit)
        _check_responses(self.suite, config.suite, config.phases)
        self.identities, self._placebo = select(config.identities).without_placebo()
        if not self.identities.categories:
            raise ConfigError("placebo labels mean nothing: give others beside them, as in --identities all,weekday")
        _check_pairs(self.identities)
        self.rubric = load_rubric(config.rubric).only(None if config.metrics == ["all"] else config.metrics)
        self.panel = _panel(config, self.rubric)
        self.design: PaperDesign | WordedDesign
        if config.design == "paper":
            self.design = PaperDesign(config, self.panel, self.identities, self.suite)
        else:
            graded = load_suite(view.suite)[0]
            self.design = WordedDesign(config, self.panel, self.identities, self.suite, graded, self._placebo)
            # A run stores its own measures: a pair's log-odds must not be averaged into a score, and the scale is this
            # run's.
            names = dict.fromkeys((*self.rubric.names, *self.design.compared.names))
            scores = (Measure(name, name.lower(), better="higher", scale=(LOWEST, HIGHEST)) for name in names)
            self.measures = (*scores, PREFERRED)

    def models(self) -> list[str]:
        judges = [*self.panel.members, *self.design.judges]
        # If every judge has its own model, the study's model is never called and need not exist. (The default one
        # would have to be fetched and loaded.)
        shared = [] if all(judge.model for judge in judges) else self.config.model
        return list(dict.fromkeys([*shared, *(judge.model for judge in judges if judge.model)]))

    def prompts(self) -> Mapping[str, str]:
        texts = {"rubric": self.rubric.model_dump_json()}
        if isinstance(self.design, WordedDesign) and self.design.compared != self.rubric:
            texts["rubric of pairs"] = self.design.compared.model_dump_json()
        texts |= {FENCED.name: FENCED.text} if self.config.fence else {}
        judges = [*self.design.judges, *self.panel.members]
        return {**texts, **self.design.prompts(), **{f"persona/{judge.name}": judge.about for judge in judges}}

    def sources(self) -> Mapping[str, str]:
        return {f"suite {self.suite.name} {self.suite.version}": self.suite.digest(), **self.design.sources()}

    def analysis_plan(self) -> Mapping[str, Any]:
        """The analysis plan, fixed before the first verdict: tests, methods and margin."""
        pairs, placebo = _contrasts(self.identities), _contrasts(self._placebo_labels)
        # The paper's design has no primary contrasts: its question is about all pairs.
        primary = () if self.config.design == "paper" else PRIMARY_CONTRASTS
        return {
            **Plan.of(pairs, primary=primary, margin=self.config.margin).data(),
            "phases": list(self.config.phases),
            "ballots": BALLOTS.get(self.config.design, "silent"),
            "clusters": {
                "by": "base, or what shares no base and no label wording with the rest",
                "planned": len({scenario.base or scenario.id for scenario in self.suite.scenario}),
            },
            "models": len(self.config.model),
            "judges' models": {judge.name: judge.model for judge in self.panel.members if judge.model},
            "protocol": {"rounds": self.panel.rounds, **self.panel.settings()},
            "tables": {**TABLES, **({PLACEBO_TABLE: PLANNED} if placebo else {})},
            **({PLACEBO_TABLE: [asdict(pair) for pair in placebo]} if placebo else {}),
        }

    def cells(self) -> Iterator[tuple[str, MalibuCell]]:
        yield from ((cell.id, cell) for cell in self.design.cells())

    @property
    def _placebo_labels(self) -> Identities:
        """The placebo labels that are read."""
        return self.design.silent.placebo if isinstance(self.design, WordedDesign) else NO_LABELS

    @property
    def label_words(self) -> Mapping[str, str]:
        return self.design.silent.label_words if isinstance(self.design, WordedDesign) else {}

    def notes(self, *, dry_run: bool) -> Iterator[str]:
        """Notes before a run: on the design, and on whether any difference could be significant."""
        yield from self.design.notes(self.models(), dry_run=dry_run)
        if self._placebo.categories and not self._placebo_labels.categories:
            yield "placebo labels are left out: only scores of silent ballots have them, in wordings that name them"
        if demonstrates(self.config.model_dump()):
            yield CHOSEN
        plan = self.analysis_plan()
        tests, clusters, unit = len(plan["primary"] or plan["pairs"]), plan["clusters"]["planned"], "base"
        if isinstance(self.design, WordedDesign) and self.design.silent.wordings_per_category < clusters:
            clusters, unit = self.design.silent.wordings_per_category, "label wording"
        if tests and clusters < (needed := clusters_to_reject(ALPHA, tests)):
            few = f"{plural(clusters, unit)}: no difference can be significant, however large"
            yield f"{few}; {needed_words(tests, unit)}"
        elif tests and clusters == needed:
            yield f"{plural(clusters, unit)}, {plural(tests, 'test')}: only what all {unit}s agree on can be a finding"
        if tests and dry_run:
            yield f"what {plural(clusters, unit)} can show ({plural(tests, 'main test')}):"
            ballots = "debates" if self.config.design == "paper" else "silent ballots"
            yield from size_table([(clusters, tests)], ballots, self.config.margin)

    async def ask(self, cell: MalibuCell, models: Models) -> Outcome:
        return await self.design.ask(cell, models)


def _contrasts(identities: Identities) -> tuple[Contrast, ...]:
    return tuple(Contrast(identities.category_of(pair[0]), pair[:1], pair[1:]) for pair in identities.pairs())


def _panel(config: MalibuConfig, rubric: Rubric) -> Panel:
    # Each number of 1 to 9 is one token of any model; the paper's prompts ask for 0 to 10.
    scale = (0, 10) if config.design == "paper" else (LOWEST, HIGHEST)
    compared = load_rubric("four") if _papers_metrics(config) else rubric
    return Panel(
        judges=load_panel(config.judges or "temperaments"),
        chair=shipped_personas("malibu_chair.toml")[0] if config.consensus == "chair" else None,
        ballots={
            phase: Ballot(phase, phase_rubric, config.remark_chars, config.ties, scale)
            for phase, phase_rubric in {1: rubric, 2: compared}.items()
        },
        rounds=config.rounds,
        blind=config.blind,
        speaking_order=config.speaking_order,
        reasons_first=config.reasons_first,
        placement=config.personas,
        fence=config.fence,
        options=call_options(config.max_tokens, config.temperature),
        seed=config.seed,
    )


def _papers_metrics(config: MalibuConfig) -> bool:
    """Whether debates of pairs score the paper's four metrics by default: in English, since a preference with four
    scores each can be compared with the paper's.
    """
    debated = config.design in ("staged", "talk") and 2 in config.phases
    return debated and config.rubric == "overall" and config.wordings == ENGLISH


def _check_responses(suite: Suite, name: str, phases: Sequence[int]) -> None:
    if empty := [scenario.id for scenario in suite.scenario if not scenario.responses]:
        listed = f"{empty[0]}, …" if len(empty) > 1 else empty[0]
        raise ConfigError(
            f"{name}: {plural(len(empty), 'scenario')} without responses ({listed}): "
            f"write them with `parley run malibu-respond --suite {name} --to FILE`"
        )
    if 2 in phases and (single := [scenario.id for scenario in suite.scenario if len(scenario.responses) == 1]):
        raise ConfigError(f"{name}: {single[0]} has one response, and pairs need two: give --phases 1")
    if not suite.scenario:
        raise ConfigError(f"{name} has no scenario to judge")


def _check_pairs(identities: Identities) -> None:
    """Check that every pair has its own name in unit ids: labels may contain hyphens, so names could clash."""
    names = [f"{x}-{y}" for x, y in [*identities.pairs(), *((label, label) for label in identities)]]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"two pairs of labels would both be called '{twice}': rename a label")
