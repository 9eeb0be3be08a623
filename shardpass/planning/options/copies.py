"""Track the available copies of each array during planning: the value under its own sharding, and other copies.

State: ``placed`` has for each value its array, type and sharding; ``at_hand`` the shardings under which an array is
there, in the order in which they came. The result of a constraint that holds is an array of its own: it is there as the
constraint says, in the tile that was brought for it (``PlacedArray.tile``), and what its users need is made from that.
Copies made in a region end with it: ``entered`` and ``left`` bracket a region, and a journal restores what was before.
Invariant: before an op is planned all its operands are placed.

Example on x=2: after ``%1 = add`` in rows, a user that needs it whole adds the copy {replicated}; the next user
that needs it whole finds it, and one that needs columns starts from whichever of the two receives less (a slice of the
whole).
"""

from __future__ import annotations

from typing import NamedTuple

from shardpass.ops.splits.factors import DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.price.clock import Clock
from shardpass.planning.price.prices import Prices
from shardpass.planning.price.steps import Copy
from shardpass.program.program import Array
from shardpass.sharding import Sharding


class PlacedArray(NamedTuple):
    """A value of the whole program with the sharding it has. ``dims`` is None if the mesh's order of devices
    cannot express it.
    """

    array: int  # the number of the first value that was this array
    type: Array
    sharding: Sharding
    dims: DimAxes | None
    mesh: PrimeMesh  # as ops of the value's region see it
    tile: Copy | None = None  # of a constraint's result: the operand's copy that it is

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def copy(self) -> Copy:
        return self.under(self.sharding)

    def under(self, sharding: Sharding) -> Copy:
        """Return the copy of the array under ``sharding``."""
        return self.tile if self.tile is not None and sharding == self.sharding else Copy(self.array, sharding)


class Copies:
    """The shardings under which copies of each array exist at the present point of the plan."""

    def __init__(self, prices: Prices, clock: Clock) -> None:
        self.prices, self.clock = prices, clock
        self.placed: dict[int, PlacedArray] = {}
        self._at_hand: dict[int, tuple[Sharding, ...]] = {}
        self._journal: list[tuple[int, tuple[Sharding, ...]]] = []

    def is_made(self, value: int) -> bool:
        """Return whether an op made ``value`` already: in a folded program several ops may make one value."""
        return value in self.placed

    def hold(
        self,
        value: int,
        type: Array,
        sharding: Sharding,
        mesh: PrimeMesh,
        array: int | None = None,
        tile: Copy | None = None,
    ) -> None:
        """Record that ``value`` exists under ``sharding``.

        ``array``: another value that is the same array. ``tile``: the copy that this value is.

        If another op made ``value`` before (in a folded program), drops the copies that belong to that op's value.
        """
        root = value if array is None else self.placed[array].array
        if array is None and self.is_made(value):
            self._journal.append((root, self._at_hand.get(root, ())))
            self._at_hand[root] = ()
        self.placed[value] = PlacedArray(root, type, sharding, mesh.dims(sharding, type.rank), mesh, tile)
        self.add(root, sharding)

    def add(self, array: int, sharding: Sharding) -> None:
        """Record a further copy of ``array``, under ``sharding``, for the rest of this block."""
        known = self._at_hand.get(array, ())
        if sharding not in known:
            self._journal.append((array, known))
            self._at_hand[array] = (*known, sharding)

    def has(self, array: int, sharding: Sharding) -> bool:
        return sharding in self._at_hand.get(array, ())

    def of(self, placed: PlacedArray) -> tuple[Sharding, ...]:
        """Return the shardings under which copies of the array exist, that of ``placed`` first."""
        known = self._at_hand.get(placed.array, ())
        if len(known) == 1:
            return (placed.sharding,) if known[0] == placed.sharding else (placed.sharding, *known)
        return (placed.sharding, *(s for s in known if s != placed.sharding))

    def entered(self) -> int:
        """Return a mark for the beginning of a region, which ``left`` takes."""
        return len(self._journal)

    def left(self, mark: int) -> None:
        """Remove the copies that were added since ``mark``."""
        while len(self._journal) > mark:
            array, known = self._journal.pop()
            self._at_hand[array] = known

    def since(self, mark: int, array: int) -> tuple[Sharding, ...]:
        """Return the shardings of the copies of ``array`` that existed at ``mark``."""
        for one, known in self._journal[mark:]:
            if one == array:
                return known
        return self._at_hand.get(array, ())

    def price(self, placed: PlacedArray, target: Sharding) -> float:
        """Return the seconds to reshard ``placed`` to ``target`` from the nearest copy."""
        return self.nearest(placed, target)[0]

    def least(self, placed: PlacedArray, target: Sharding) -> float:
        """Return a lower bound in seconds of ``price``."""
        return min([self.clock.least_move(placed.type, source, target, placed.mesh) for source in self.of(placed)])

    def nearest(self, placed: PlacedArray, target: Sharding) -> tuple[float, Sharding]:
        """Return (seconds, the copy to start from). Among copies with equal cost, the value's own comes first."""
        best = (self.between(placed, placed.sharding, target), placed.sharding)
        for source in self.of(placed)[1:] if best[0] else ():
            price = self.between(placed, source, target)
            if price < best[0]:
                best = (price, source)
        return best

    def bytes(self, placed: PlacedArray, source: Sharding, target: Sharding) -> int:
        """Return the bytes that a device receives to reshard ``placed`` from its copy ``source`` to ``target``."""
        return self.prices.move(placed.type, source, target, placed.mesh)

    def between(self, placed: PlacedArray, source: Sharding, target: Sharding) -> float:
        """Return the seconds to reshard ``placed`` from a copy under ``source`` to ``target``."""
        return self.clock.reshard(placed.type, source, target, placed.mesh, self.prices)
