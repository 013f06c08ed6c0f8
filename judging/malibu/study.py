"""MALIBU: a panel of judges scores the same answers under different identities, alone (phase 1) and in pairs (2).

    parley run malibu --suite quick

In the default design (`staged`) a neutral judge casts a silent ballot on every response under every label (`silent`);
then a panel debates a sample (`talk`): silent ballots, first ballots with reasons that are blind, and a discussion. The
design `paper` is the paper's: four judges discuss from the beginning, in its prompts. Every judge's scores of every
round are stored as verdicts. Several models judge the same units in one run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from parley.agents import ConfigError, Models
from parley.analysis.stats.results import Contrast
from parley.base.text import plural
from parley.judging.config import call_options, require_each_once, shipped_personas
from parley.judging.grid import GridStudy
from parley.judging.malibu.analysis_plan import PRIMARY, TABLES, Plan
from parley.judging.malibu.cell import TALK, MalibuCell
from parley.judging.malibu.config import MalibuConfig
from parley.judging.malibu.panel import FENCED, Ballot, Panel, load_panel
from parley.judging.malibu.paper import PaperDesign
from parley.judging.malibu.silent import HIGHEST, LOWEST
from parley.judging.malibu.worded import WordedDesign
from parley.judging.rubric.rubrics import Rubric, load_rubric
from parley.judging.study import Measure, Outcome, Unit
from parley.scenarios import Identities, Suite, load_suite, select
from parley.scenarios.ballot_wordings import ENGLISH

PREFERRED = Measure("preferred", "preferred", kind="choice")
BALLOTS = {"paper": "last", "talk": "blind"}
"""Which ballots the analysis reads, if not the silent ones."""


class Malibu(GridStudy):
    """Do scores depend on who is speaking? A panel scores the same responses under different identities."""

    name = "malibu"
    Config = MalibuConfig
    report = "parley.judging.malibu.report:report"
    papers = ("Mirza et al., 2025",)
    comparable = "parley.judging.malibu.ballots:comparable"
    measures: tuple[Measure, ...] = (Measure("", "score", better="higher", scale=(0, 10)), PREFERRED)
    Cell = MalibuCell

    def __init__(self, config: MalibuConfig) -> None:
        require_each_once(model=config.model, phases=[str(phase) for phase in config.phases])
        self.config: MalibuConfig = config
        whole, view = load_suite(config.suite)
        self.suite = whole.only(config.scenarios, config.per_base, config.limit)
        _check_responses(self.suite, config.suite)
        self.identities = select(config.identities)
        _check_pairs(self.identities)
        self.rubric = load_rubric(config.rubric).only(None if config.metrics == ["all"] else config.metrics)
        self.panel = _panel(config, self.rubric)
        self.design: PaperDesign | WordedDesign
        if config.design == "paper":
            self.design = PaperDesign(config, self.panel, self.identities, self.suite)
        else:
            graded = load_suite(view.suite)[0]
            self.design = WordedDesign(config, self.panel, self.identities, self.suite, graded)
            # A run stores its own: a pair's log-odds must not be averaged into a score, and the scale is this run's.
            names = dict.fromkeys((*self.rubric.names, *self.design.compared.names))
            scores = (Measure(name, name.lower(), better="higher", scale=(LOWEST, HIGHEST)) for name in names)
            self.measures = (*scores, PREFERRED)

    def models(self) -> list[str]:
        judges = [*self.panel.members, *self.design.judges]
        # Where every judge has a model of its own, the study's is never called and need not exist: it is an embedded
        # one by default, with weights to fetch and load.
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
        """What will be tested, how, and with which margin, decided before the first verdict."""
        pairs = (Contrast(self.identities.category_of(pair[0]), pair[:1], pair[1:]) for pair in self.identities.pairs())
        # The paper's design has no primary contrasts: it asks about all pairs.
        primary = () if self.config.design == "paper" else PRIMARY
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
            "tables": TABLES,
        }

    def cells(self) -> Iterator[tuple[str, MalibuCell]]:
        yield from ((cell.id, cell) for cell in self.design.cells())

    def reads_aloud(self, unit: Unit) -> bool:
        """Whether the terminal shows what is said in a unit: true for the only debate of a run."""
        return unit.facets.get("stage") == TALK and self.config.debates == self.config.repeats == 1

    @property
    def label_words(self) -> Mapping[str, str]:
        return self.design.silent.label_words if isinstance(self.design, WordedDesign) else {}

    def notes(self, *, dry_run: bool) -> Iterator[str]:
        """What its design has to say before a run begins."""
        return self.design.notes(self.models(), dry_run=dry_run)

    async def ask(self, cell: MalibuCell, models: Models) -> Outcome:
        return await self.design.ask(cell, models)


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
    """Whether debates of pairs score the paper's four metrics though nobody asked for metrics.

    Two answers in one reply are scored in words anyway, and a preference with four scores each can be read beside the
    paper's. Its metrics are in English.
    """
    debated = config.design in ("staged", "talk") and 2 in config.phases
    return debated and config.rubric == "overall" and config.wordings == ENGLISH


def _check_responses(suite: Suite, name: str) -> None:
    if empty := [scenario.id for scenario in suite.scenario if not scenario.responses]:
        listed = f"{empty[0]}, …" if len(empty) > 1 else empty[0]
        raise ConfigError(
            f"{name}: {plural(len(empty), 'scenario')} without responses ({listed}): "
            f"write them with `parley run malibu-respond --suite {name} --to FILE`"
        )
    if not suite.scenario:
        raise ConfigError(f"{name} has no scenario to judge")


def _check_pairs(identities: Identities) -> None:
    """Every pair needs its own name in unit ids; labels may contain hyphens, so names could clash."""
    names = [f"{x}-{y}" for x, y in [*identities.pairs(), *((label, label) for label in identities)]]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"two pairs of labels would both be called '{twice}': rename a label")
