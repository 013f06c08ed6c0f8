"""Sections made from `docs/papers/`: every point of the four papers, their prompts, and their models.

A page of the documentation links to the data file; on the site that link leads to the section made from it.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, model_validator

from parley.agents.models.prices import price_list

DATA = Path(__file__).parent / "papers"
STUDIES = DATA.parents[1] / "judging"
PAPERS = ("malibu", "rldf", "stardtox", "mabrf")
PRINTED = {
    "malibu": ("malibu/claims.toml", "malibu/claims_a3.toml", "malibu/published_matrix.txt"),
    "rldf": ("rldf/published_bbq.txt", "rldf/published_rubric.txt", "rubric/published_kappa.txt"),
    "stardtox": ("stardtox/published.txt", "bbq/published.txt"),
    "mabrf": ("bbq/mabrf/published.txt", "bbq/mabrf/published_squad.txt"),
}
"""Where the reports keep the numbers that the papers print."""
Status = Literal["whole", "differs", "missing"]


class Row(BaseModel, extra="forbid", frozen=True):
    """A row of a data file; unknown keys are refused."""


class Item(Row):
    """One point of a paper: a component, a prompt, a number, a figure.

    Args:
        section: Where it is in the paper.
        what: What the paper has.
        where: Where it is here: `file`, `file:name in it`, `table NAME` of a report, or a command.
        status: Whether it is here whole, differs, or is missing.
        why: What differs or is missing, and why; empty for `whole`.
    """

    section: str
    what: str
    where: tuple[str, ...] = Field(min_length=1)
    status: Status
    why: str = ""

    @model_validator(mode="after")
    def _says_why(self) -> Item:
        if (self.status == "whole") != (self.why == ""):
            raise ValueError(f"'{self.what}': a point that differs or is missing says why, and a whole one does not")
        return self


class Paper(Row):
    """A paper, point by point.

    Args:
        title: The system's name.
        paper: Authors, title and number.
        explained: The page that explains the system.
        item: The points, in the paper's order.
    """

    title: str
    paper: str
    explained: str
    item: tuple[Item, ...]


class PaperPrompt(Row):
    """A prompt of a paper, and ours.

    Args:
        paper: The system's name.
        place: Where the original is.
        asked: What the original asks for.
        files: Our prompts, in the `prompts/` of a study's folder.
        changed: What differs; empty if nothing but the layout does.
    """

    paper: str
    place: str
    asked: str
    files: tuple[str, ...] = Field(min_length=1)
    changed: str = ""


class PaperModel(Row):
    """A model of a paper.

    Args:
        name: The paper's name for it.
        papers: The papers that used it, and for what.
        served: Whether it can still be had.
        here: Its name here, if there is one.
        cost: What it costs, if `agents/models/prices.toml` does not have it.
        source: Where this was looked up.
    """

    name: str
    papers: str
    served: str
    here: str = ""
    cost: str = ""
    source: str = ""


class _Prompts(Row):
    fence: str
    prompt: tuple[PaperPrompt, ...]


class _Models(Row):
    looked_up: str
    model: tuple[PaperModel, ...]


def load_paper(name: str) -> Paper:
    return Paper.model_validate(_read(name))


def load_prompts() -> tuple[PaperPrompt, ...]:
    return _Prompts.model_validate(_read("prompts")).prompt


def load_models() -> tuple[PaperModel, ...]:
    return _Models.model_validate(_read("models")).model


def _read(name: str) -> dict[str, object]:
    return tomllib.loads((DATA / f"{name}.toml").read_text("utf-8"))


def _row(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _table(*columns: str, rows: Iterator[str]) -> str:
    return "\n".join([_row(*columns), "|---" * len(columns) + "|", *rows])


def counts(paper: Paper) -> str:
    """How many points have each status, in words."""
    found = Counter(item.status for item in paper.item)
    listed = {"whole": found["whole"], "different": found["differs"], "missing": found["missing"]}
    return f"Points: {len(paper.item)}; " + ", ".join(f"{status}: {count}" for status, count in listed.items())


def paper_section(name: str) -> Iterator[str]:
    """Every point of one paper."""
    paper = load_paper(name)
    yield f"## {paper.title}, point by point"
    yield f"Every component, prompt, number and figure of {paper.paper}, with where it is here. {counts(paper)}."
    yield f"[{paper.title}]({paper.explained}) explains it."
    yield "A `table` is one of the report's; `parley report RUN --figures all` draws the figures besides the main one."
    yield _table(
        *("in the paper", "what", "whole, differs or missing, and why", "here"),
        rows=(
            _row(
                item.section,
                item.what,
                f"**{item.status}**: {item.why}" if item.why else item.status,
                ", ".join(f"`{place}`" for place in item.where),
            )
            for item in paper.item
        ),
    )

    yield f"### Numbers that {paper.title}'s paper prints"
    for file in PRINTED[name]:
        yield from (_claims if file.endswith(".toml") else _numbers)(STUDIES / file)


def _numbers(file: Path) -> Iterator[str]:
    """The table of a text file, after its comments."""
    lines = file.read_text("utf-8").splitlines()
    comments = [line.removeprefix("# ") for line in lines if line.startswith("#")]
    header, *rows = (line.split() for line in lines if not line.startswith("#"))
    yield " ".join([f"`judging/{file.relative_to(STUDIES)}`.", *comments])
    yield _table(*header, rows=(_row(*row) for row in rows))


def _claims(file: Path) -> Iterator[str]:
    """A paper's claims as it words them, with their sections and the numbers that it prints for them."""
    yield f"`judging/{file.relative_to(STUDIES)}`."
    claims = tomllib.loads(file.read_text("utf-8"))["claim"]
    rows = (_row(claim["quote"], claim["section"], claim.get("paper", "–")) for claim in claims)
    yield _table("claim", "section", "printed", rows=rows)


def prompts_section() -> Iterator[str]:
    """Every prompt that the papers print, and what ours changes."""
    file = _Prompts.model_validate(_read("prompts"))
    yield "## Prompts of the papers, and ours"
    yield (
        "What each prompt of the four papers asks for, and what ours changes. The words of ours are the files "
        "in `prompts/` of each study's folder, and `parley show RUN --prompts` prints those that a run used."
    )
    for title in dict.fromkeys(prompt.paper for prompt in file.prompt):
        yield f"### Prompts of {title}"
        yield _table(
            *("in the paper", "the original asks for", "ours", "what ours changes"),
            rows=(
                _row(prompt.place, prompt.asked, ", ".join(f"`{name}`" for name in prompt.files), prompt.changed or "–")
                for prompt in file.prompt
                if prompt.paper == title
            ),
        )
    yield "### What the fence adds"
    yield file.fence


def models_section() -> Iterator[str]:
    """Which of the papers' models can still be had."""
    file = _Models.model_validate(_read("models"))
    prices = price_list()

    def cost(model: PaperModel) -> str:
        listed = prices.get(model.here)
        known = f"{listed.price.prompt:g}, {listed.price.completion:g}" if listed else ""
        return known or model.cost or "not known"

    yield "## Models of the papers"
    yield (
        "Which models of the four papers can still be had, under which name, and what they cost: US dollars per "
        f"million tokens of prompt and reply. Looked up on {file.looked_up}; the linked pages may be older, and what "
        "was not found is not known."
    )
    yield _table(
        *("model", "used in", "still served", "name here", "cost"),
        rows=(
            _row(
                f"[{model.name}]({model.source})" if model.source else model.name,
                model.papers,
                model.served,
                f"`{model.here}`" if model.here else "–",
                cost(model),
            )
            for model in file.model
        ),
    )
