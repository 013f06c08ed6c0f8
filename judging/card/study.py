"""The judge's card as a study: its silent ballots, and the order in which they are cast.

    parley card local/smollm2          # this study, and a page, a picture, Markdown and JSON made from it
    parley run card --model local/smollm2

Every unit is one silent ballot, as in MALIBU, whose labels, wordings and graded responses it uses. The facet `part`
says what a unit is for: graded and graded-pairs (can it judge), triangle (circles), reverse and reverse-pairs
(direction), wording, again (repeats), labels, injection, author; with `--talk`, talk is a debate as in MALIBU.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from parley.agents import DEFAULT_MODEL, ConfigError, Models, SilentBallot, seed_from
from parley.agents.models.registry import reads_silently
from parley.agents.models.sim import SimClient
from parley.agents.providers import provider_of
from parley.base.text import plural
from parley.judging.ballots import PREFERRED, about_samples, cast
from parley.judging.card.battery import SHIPPED, Battery, BatterySize, SizeName, load_battery
from parley.judging.config import call_options
from parley.judging.known_order import GOOD, SEVERE, Part, Text
from parley.judging.malibu.panel import FACETS, Ballot, Panel, load_panel
from parley.judging.malibu.silent import GRADED, GRADED_PAIRS, OVERALL, BallotSettings, SilentBallots
from parley.judging.malibu.talk import Talk
from parley.judging.malibu.yardstick import GradedOrder, graded_texts
from parley.judging.scoring.rubrics import load_rubric
from parley.judging.study import Advanced, Facet, FacetValue, Measure, Outcome, Unit
from parley.scenarios import Scenario, aligned_directions, load_attempts, load_suite, select
from parley.scenarios.ballot_wordings import load_ballot_wordings
from parley.scenarios.malibu import TEN_EACH

REWORDED: Sequence[Text] = (GOOD, ("safety", SEVERE), ("figure", SEVERE))
"""The texts that are also read in other words. From `ENOUGH` bases on, two are enough; with eight bases, the interval
of their joint shift holds in 91% of simulated cards with two texts, and in 94% with three."""
ENOUGH = 20
PAIRS = ("graded-pairs", "reverse-pairs", "triangle")
"""The parts in which two answers stand side by side."""
TALK, TALK_TOKENS = "talk", 400
BLANK: Mapping[str, FacetValue] = {
    **{"category": "", "identity": "", "control": "", "wording": "", "flaw": "", "dose": 0, "flawed": ""},
    **{"against": "", "author": "", "attempt": "", "ask": 0, "heard": ""},
}
"""Facets of all units, so that every column of a frame has a value in every row."""


class CardConfig(BaseModel, extra="forbid", frozen=True):
    """Everything that changes a card."""

    model: str = Field(DEFAULT_MODEL, description="the judge, as provider/model")
    battery: Advanced[str] = Field(SHIPPED, description=f"the battery: {SHIPPED}, or a .toml file")
    size: SizeName | None = Field(
        None,
        description="how much of the battery is read (default: sampled where the model gives no log-probabilities, "
        "subset for embedded models, else default)",
    )
    talk: bool = Field(
        False,
        description="also let a panel, all played by the model, debate some answers: do judges follow and repeat what "
        "they hear, and what do reasons and talking add to a difference between labels?",
    )
    temperature: float | None = Field(
        None, ge=0, le=2, description="sampling temperature of a model without log-probabilities (default: its own)"
    )
    seed: int = Field(0, description="random seed: which base gets which wording, attempt and byline")


class JudgesCard:
    """What can this judge do, and what moves its scores besides quality? A fixed battery of silent ballots."""

    name: ClassVar[str] = "card"
    Config: ClassVar[type[BaseModel]] = CardConfig
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure(OVERALL, "overall", better="higher", scale=(1, 9)),
        Measure(PREFERRED, "preferred", kind="choice"),
    )
    facets: ClassVar[tuple[Facet, ...]] = (
        *(replace(facet, words={}) if facet.name == "flaw" else facet for facet in FACETS if facet.name != "phase"),
        Facet("against", title="against {}"),
        Facet("author", title="by {}"),
        Facet("attempt", title="{}"),
        Facet("ask", title="asks for {}", silent="0", label="score asked for"),
        Facet("part", "part"),
        Facet("phase", "technical"),
    )

    def __init__(self, config: CardConfig) -> None:
        self.battery: Battery = load_battery(config.battery)
        self.sampled = not reads_silently(config.model)
        on_cpu = provider_of(config.model).on_cpu
        size = config.size or ("sampled" if self.sampled else "subset" if on_cpu else "default")
        if size not in self.battery.size:
            raise ConfigError(f"{self.battery.name} has no size '{size}' (it has: {', '.join(self.battery.size)})")
        self.config = config.model_copy(update={"size": size})
        self.size: BatterySize = self.battery.size[size]
        embedded = self.battery.embedded
        fast = on_cpu and size in embedded.sizes
        self.digest = self.battery.digest("embedded") if fast else self.battery.digest()
        self.samples = max(self.size.samples, self.battery.size["sampled"].samples) if self.sampled else 1
        suite, _ = load_suite(self.battery.suite)
        self.attempts = load_attempts(self.battery.attempts)
        with_sets = {graded.base for graded in suite.graded}
        # Bases with graded responses and many scenarios first: a smaller size is then a part of every larger one.
        first = {base: place for place, base in enumerate(TEN_EACH)}
        bases = sorted((base.id for base in suite.base), key=lambda base: (base not in with_sets, first.get(base, 99)))
        chosen = set(bases[: self.size.bases])
        self.suite = suite.only(sorted(chosen), self.size.scenarios)
        most = min(self.size.graded, embedded.graded) if fast else self.size.graded
        sets = sorted(suite.graded, key=lambda graded: bases.index(graded.base))[:most]
        flawed = [(kind, dose) for kind in self.size.kinds for dose in self.size.doses]
        self.graded = graded_texts(suite, sets, [GOOD, *flawed])
        known = {kind for order in self.graded.orders.values() for kind, _ in order.texts}
        if missing := next((kind for kind in self.size.kinds if kind not in known), None):
            raise ConfigError(f"{self.battery.suite} has no graded response with a flaw of the kind '{missing}'")
        self._scenarios = {scenario.id: scenario for scenario in suite.scenario}
        self.answered: list[Scenario] = [scenario for scenario in self.suite.scenario if scenario.responses]
        self.identities = select(["all"])
        self._directions = aligned_directions(
            (base for base in suite.base if base.id in chosen), self.identities.categories
        )
        wordings = load_ballot_wordings(self.battery.wordings)
        # Questions that were added since have no reverse in the battery, and published cards were not asked them.
        asked = tuple(question for question in wordings.question if question.id in self.battery.reverse.single)
        self.silent = SilentBallots(
            wordings.model_copy(update={"question": asked}),
            BallotSettings(samples=self.samples, places=embedded.places if fast else (), seed=config.seed),
            identities=self.identities,
            scenarios=self.answered,
        )
        self._options = call_options(16, config.temperature)
        table = self.battery.talk
        ballot = Ballot(
            1, load_rubric("overall"), table.remark_chars, False, (self.silent.settings.low, self.silent.settings.high)
        )
        panel = Panel(
            judges=load_panel(table.judges),
            ballots={1: ballot},
            rounds=table.rounds,
            options=call_options(TALK_TOKENS, config.temperature),
            seed=config.seed,
        )
        self.talk = Talk(silent=self.silent, panel=panel)
        # Prompts that begin alike are neighbours: an embedded model reads what they share only once.
        self._units = [unit for group in self._groups() for unit in sorted(map(self._filled, group), key=self.task)]

    def models(self) -> list[str]:
        return [self.config.model]

    def prompts(self) -> Mapping[str, str]:
        reverse = self.battery.reverse
        texts = {f"reverse/{key}": text for key, text in reverse.single.items()}
        texts |= {f"reverse-pair/{key}": text for key, text in reverse.pair.items()}
        texts |= {f"byline/{place}": byline.text for place, byline in enumerate(self.battery.author.byline)}
        return {**self.silent.prompts(), **texts, "persona/Judge": self.silent.judge.about}

    def sources(self) -> Mapping[str, str]:
        return {
            f"battery {self.battery.name} {self.battery.version}": self.digest,
            f"suite {self.suite.name} {self.suite.version}": self.suite.digest(),
            **self.graded.sources,
            f"attempts {self.attempts.name} {self.attempts.version}": self.attempts.digest(),
            **self.silent.sources(),
        }

    def analysis_plan(self) -> Mapping[str, Any]:
        """The battery's lines with their null values and margins, before the first ballot."""
        return {
            "battery": {
                "name": self.battery.name,
                "version": self.battery.version,
                "sha256": self.digest,
                "size": self.config.size,
                **({"talk_sha256": self.battery.talk.digest()} if self.config.talk else {}),
            },
            "family": self.battery.family_of(self.config.model).id,
            "readout": "sampled" if self.sampled else "expected",
            "lines": [
                line.model_dump()
                for line in (*self.battery.line, *(self.battery.talk.line if self.config.talk else ()))
            ],
            "directions": self._directions,
            "tables": {"card": "planned"},
        }

    def plan(self) -> Iterator[Unit]:
        yield from self._units

    def _filled(self, unit: Unit) -> Unit:
        return Unit(unit.id, {**BLANK, **unit.facets, "model": self.config.model})

    def _groups(self) -> Iterator[Iterable[Unit]]:
        """All ballots about one situation at a time."""
        for place, order in enumerate(self.graded.orders.values()):
            yield self.silent.graded(order, *self._parts(order, place))
        seen: dict[str, int] = {}
        for scenario in self.answered:
            base = scenario.base or scenario.id
            labels = self.silent.singles(scenario, controls=False)
            group = [Unit(unit.id, {**unit.facets, "part": "labels"}) for unit in labels]
            if base not in seen:  # where label wordings are not crossed, one scenario of a base is enough
                seen[base] = len(seen)
                group += [*self._about_authors(scenario, seen[base]), *self._injected(scenario, seen[base])]
            yield group
        if self.config.talk:
            yield from self._debates()

    def _debates(self) -> Iterator[Iterable[Unit]]:
        """The debates on each text of a seeded sample; they come last, since they take most of the time."""
        sample = self.battery.talk.sample[self.config.size or "default"]
        first = {scenario.base or scenario.id: scenario for scenario in reversed(self.answered)}
        drawn = sorted(first, key=lambda base: seed_from("debated", self.config.seed, base))[: sample.bases]
        for base in drawn:
            yield [
                Unit(unit.id, {**unit.facets, "part": TALK})
                for unit in self.talk.units(first[base], [1], 0)
                if unit.facets["category"] in sample.categories
            ]

    def _parts(self, order: GradedOrder, place: int) -> Iterator[Part]:
        """How the graded responses of a base are read: alone, with the reverse question, in other words, in pairs."""
        size, other = self.size, self._other_question(order.scenario, place)

        def part(name: str, texts: Collection[Text], against: Text = GOOD, **facets: FacetValue) -> Part:
            paired = name in PAIRS
            shown: dict[str, FacetValue] = {"part": name, "against": against[0], **facets}
            return Part(name=name, texts=texts, paired=paired, against=against, facets=shown)

        again = [GOOD, *_severe(size.reversed)]
        yield part("graded", order.texts)
        yield part("reverse", again)
        if size.again:
            yield part("again", again, repeat=1)
        yield part("wording", REWORDED[:2] if size.graded >= ENOUGH else REWORDED, question=other)
        yield part("graded-pairs", _severe(size.pairs))
        yield part("reverse-pairs", _severe(size.reversed_pairs))
        if "safety" in size.pairs and "figure" in size.pairs:  # the third side of the triangle with the good response
            yield part("triangle", _severe(["safety"]), against=("figure", SEVERE))

    def _other_question(self, scenario: Scenario, place: int) -> str:
        """A question wording other than the base's own, so that all pairs of wordings occur."""
        own, ids = (
            self.silent.question(scenario.base or scenario.id).id,
            [row.id for row in self.silent.wordings.question],
        )
        others = [question for question in ids if question != own]
        return others[place % len(others)]

    def _about_authors(self, scenario: Scenario, place: int) -> Iterator[Unit]:
        for author in ("own", "other", "person"):
            facets: dict[str, FacetValue] = {"author": author, "wording": f"byline-{place}"}
            yield self._unit("author", f"author/{scenario.id}/{author}", scenario, facets)

    def _injected(self, scenario: Scenario, place: int) -> Iterator[Unit]:
        attempts = sorted(self.attempts.attempt, key=lambda attempt: seed_from("attempt", self.config.seed, attempt.id))
        attempt, settings = attempts[place % len(attempts)], self.silent.settings
        for score in (settings.low, settings.high):
            facets: dict[str, FacetValue] = {"attempt": attempt.id, "ask": score}
            yield self._unit("injection", f"injection/{scenario.id}/{attempt.id}-{score}", scenario, facets)

    def _unit(self, part: str, unit_id: str, scenario: Scenario, facets: Mapping[str, FacetValue]) -> Unit:
        return self.silent.unit(unit_id, 1, scenario, {"part": part, **facets})

    def texts(self, unit: Unit) -> list[str]:
        """The answers that a unit shows, in their order."""
        facets = unit.facets
        if facets["phase"] in (GRADED, GRADED_PAIRS):
            order, against = self.graded.orders[str(facets["base"])], str(facets["against"])
            text = str(facets["flaw"]), int(facets["dose"])
            return order.shown(text, str(facets["flawed"]), (against, SEVERE) if against else GOOD)
        scenario = self._scenarios[str(facets["scenario"])]
        response = scenario.responses[0] if scenario.responses else ""
        if facets["attempt"]:
            attempt = next(row for row in self.attempts.attempt if row.id == facets["attempt"])
            score = int(facets["ask"])
            return [attempt.in_response(response, score, f"{self.silent.wordings.prompt.prefill}{score}")]
        return [response]

    def ballot(self, unit: Unit) -> SilentBallot:
        """What a unit asks."""
        facets, silent, reverse = unit.facets, self.silent, self.battery.reverse
        situation, texts = self._situation(unit), self.texts(unit)
        asked = None
        if str(facets["part"]).startswith("reverse"):
            asked = reverse.of(silent.wordings.question_by_id(str(facets["question"])))
        (ballot,) = silent.ballots(unit, texts, situation, asked)
        if facets["part"] == "reverse-pairs":
            return ballot.model_copy(update={"prefill": reverse.prefill_pair})
        if facets["part"] == "author":
            return ballot.model_copy(update={"question": self._with_byline(unit, situation, texts[0])})
        return ballot

    def _with_byline(self, unit: Unit, situation: str, text: str) -> str:
        facets, settings, words = unit.facets, self.silent.settings, self.silent.wordings
        place = int(str(facets["wording"]).rpartition("-")[2])
        names = self.battery.author_names(self.config.model, place)
        return words.single(
            situation=situation,
            answer=text,
            label=self.battery.author.wording(place),
            identity=names[str(facets["author"])],
            question=words.question_by_id(str(facets["question"])),
            low=settings.low,
            high=settings.high,
        )

    def task(self, unit: Unit) -> str:
        """The prompt of a unit."""
        if unit.facets["part"] == TALK:
            return self.talk.task(unit, self.texts(unit), self._situation(unit))
        return self.ballot(unit).question

    def _situation(self, unit: Unit) -> str:
        return self._scenarios[str(unit.facets["scenario"])].text

    def notes(self, *, dry_run: bool) -> Iterable[str]:
        """What a sampled battery is, and what the debates add."""
        debates = [unit for unit in self._units if unit.facets["part"] == TALK]
        if debates:
            yield f"--talk adds {plural(len(debates), 'debate')} of {len(self.talk.panel.judges)} judges"
        if self.sampled:
            yield about_samples(self.config.model, self.samples)

    async def run(self, unit: Unit, models: Models) -> Outcome:
        client = models[self.config.model]
        if isinstance(client, SimClient):
            client.label_words = self.silent.label_words
        if unit.facets["part"] == TALK:
            return await self.talk.run(unit, self.texts(unit), self._situation(unit), models)
        judges, ballots = [self.silent.judge], [self.ballot(unit)]
        return await cast(judges, ballots, self.config.model, models, options=self._options, on_scale=True)


def _severe(kinds: Iterable[str]) -> list[Text]:
    return [(kind, SEVERE) for kind in kinds]
