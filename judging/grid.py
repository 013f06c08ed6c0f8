"""A study of typed cells: a dataclass names what its units vary, and says how people read that.

@dataclass(frozen=True, kw_only=True)
class Cell:
    topic: str = varies("text", "{}")
    method: str = varies("varied", "{}")
    model: str = MODEL

class Mine(GridStudy):
    Cell = Cell
    def cells(self): ...
    async def ask(self, cell, models): ...
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import MISSING, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from parley.judging.study import Facet, Outcome, Study, Unit

if TYPE_CHECKING:
    from parley.agents import Models


def varies(kind: str = "", title: str = "", *, default: Any = MISSING, **more: Any) -> Any:
    """A field of a cell. A unit has a facet of its name, but none where the value is None.

    Args:
        kind: How people read it, as in `Facet`.
        title: How a unit's title says it.
        default: Its value if a cell gives none.
        more: The other arguments of `Facet`.
    """
    return field(default=default, metadata={"kind": kind, "title": title, **more})


def repeats() -> Any:
    """The field of a cell that counts its repeats, from 0."""
    return varies("count", "repeat {}", silent="0")


def compared() -> Any:
    """The field `model` of a cell whose study compares models: each of them runs every cell."""
    return varies("varied", default="")


class GridStudy(Study):
    """A study whose units are cells. Facets and titles follow from the fields; fields without `varies` have none."""

    Cell: ClassVar[type[Any]]
    """A frozen dataclass of texts, numbers and booleans."""

    def __init_subclass__(cls) -> None:
        if "Cell" in vars(cls):
            cls.facets = tuple(Facet(part.name, **part.metadata) for part in fields(cls.Cell) if part.metadata)

    @abstractmethod
    def cells(self) -> Iterator[tuple[str, Any]]:
        """The cells, each after the id of its unit. The same config must always give the same cells."""

    @abstractmethod
    async def ask(self, cell: Any, models: Models) -> Outcome:
        """Run one cell.

        Args:
            cell: A cell, with its model.
            models: Clients by model name, shared by all units of the run.
        """

    def plan(self) -> Iterator[Unit]:
        """Models are the inner loop, so that an interrupted run has the same cells for all of them."""
        models = super().models()
        for name, cell in self.cells():
            facets = {key: value for key, value in vars(cell).items() if value is not None}
            for model in models:
                several = f"/@{model}" if len(models) > 1 else ""
                yield Unit(name + several, {**facets, "model": model} if "model" in facets else facets)

    async def run(self, unit: Unit, models: Models) -> Outcome:
        return await self.ask(self.Cell(**unit.facets), models)
