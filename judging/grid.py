"""Studies of typed cells: a dataclass declares what varies between units, and how it is displayed.

@dataclass(frozen=True, kw_only=True)
class Cell:
    topic: str = varies("text", "{}")
    method: str = varies("varied", "{}")
    model: str = compared()

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
    """A field of a cell. A unit has a facet of this name, unless the value is None.

    Args:
        kind: The kind of facet, as in `Facet`.
        title: Its form in a unit's title.
        default: Its default value.
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
        """The cells with the ids of their units. The same config must always give the same cells."""

    @abstractmethod
    async def ask(self, cell: Any, models: Models) -> Outcome:
        """Run one cell.

        Args:
            cell: A cell, with its model.
            models: Clients by model name, shared by all units of the run.
        """

    def plan(self) -> Iterator[Unit]:
        """The units. Models are the inner loop, so that an interrupted run has the same cells for all models."""
        models = super().models()
        for name, cell in self.cells():
            facets = {key: value for key, value in vars(cell).items() if value is not None}
            for model in models:
                several = f"/@{model}" if len(models) > 1 else ""
                yield Unit(name + several, {**facets, "model": model} if "model" in facets else facets)

    async def run(self, unit: Unit, models: Models) -> Outcome:
        return await self.ask(self.Cell(**unit.facets), models)
