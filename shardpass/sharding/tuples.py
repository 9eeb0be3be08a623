"""The sharding of a tuple: one sharding for each leaf."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shardpass.sharding.model import Sharding


@dataclass(frozen=True, repr=False)
class TupleSharding:
    """The shardings of the leaves of a tuple, in order. Immutable, hashable."""

    elements: tuple[Sharding, ...]

    def __init__(self, elements: Iterable[Sharding]) -> None:
        object.__setattr__(self, "elements", tuple(elements))

    def __len__(self) -> int:
        return len(self.elements)

    def __iter__(self) -> Iterator[Sharding]:
        return iter(self.elements)

    def __getitem__(self, index: int) -> Sharding:
        return self.elements[index]

    @property
    def num_devices(self) -> int | None:
        """The number of devices of the first element that names any."""
        return next((e.num_devices for e in self.elements if e.num_devices is not None), None)

    def __str__(self) -> str:
        """Print the tuple as XLA does, with an index in a comment at every fifth element from the sixth on."""
        parts = (f"/*index={k}*/{e}" if k and k % 5 == 0 else str(e) for k, e in enumerate(self.elements))
        return "{" + ", ".join(parts) + "}"

    def __repr__(self) -> str:
        return f"TupleSharding({self})"
