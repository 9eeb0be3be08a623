"""What collectives and work cost on a machine, in one unit: bytes that a device could receive meanwhile.

1. A collective: its bytes and a latency. Under a profile with links of several speeds, the slowest that it crosses
   counts (``redistribute.terms.costs``).
2. A reshard: the collectives of its redistribution plan.
3. The work of an op: the greater of two terms, as a device computes while it reads and writes. The elements of its
   largest result (of an op that reduces, of its largest tile), and the points of its loop nest: an add costs its
   elements, a slice those that it takes, a product of large matrices its multiplications. Of an array that is looked up
   or updated at indices (gather, scatter, and slices at positions) only what is taken or written counts.

Without a profile a collective's latency is that of 512 bytes, an element costs a quarter of a byte, a point a 64th: a
link of 50 GB/s beside 1 TB/s of memory, at 5 bytes an element, and 3.2 tera-multiplications a second. The latency is
far below that of any machine, on purpose: so that programs of small sizes, as tests and examples have them, are decided
as the large ones that they stand for.

Example: ``[256,64] x [64,1024]`` on one device has a tile of 262,144 elements, 65,536 bytes, and 2^24 points, 262,144
bytes: the price of its work.

State: tables of what was priced. Complexity: O(1) for what is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from shardpass.ops.model import Shape, Split
from shardpass.ops.splits.assign import LATENCY_BYTES, WORK_PER_BYTE
from shardpass.ops.splits.factors import Axes, Kind, Rule
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.listed import redistribution
from shardpass.planning.prices import least_received
from shardpass.planning.steps import Copy, Reshard
from shardpass.program.program import Array
from shardpass.redistribute.problem.sub_axes import sub_axes_of
from shardpass.redistribute.program.steps import Step, StepKind
from shardpass.redistribute.terms.costs import Profile, step_seconds, tiers
from shardpass.sharding import Sharding

POINTS_PER_BYTE = 64
BYTES_PER_ELEMENT = 5  # read or written: most elements have four bytes, and ops are fused
MOST_NESTS = 4096  # that a machine remembers
MOST_MOVES = 1 << 15  # likewise
MANY = 1 << 30  # bytes by which a link is measured


class Machine:
    """Prices on the machine that ``profile`` describes, or on the one of the module's text.

    ``latency``: of a collective, in bytes, where there is no profile.
    """

    def __init__(self, profile: Profile | None = None, latency: float = LATENCY_BYTES) -> None:
        self.profile = profile
        self.latency = latency
        self.element, self.point = 1 / WORK_PER_BYTE, 1 / POINTS_PER_BYTE
        if profile is not None:
            self.latency = profile.latency * profile.bandwidth
            self.element = BYTES_PER_ELEMENT * profile.bandwidth / profile.copies
            self.point = profile.bandwidth / profile.products
        self._moves: dict[tuple[Array, Sharding, Sharding, Axes], float] = {}
        self._least_moves: dict[tuple[Array, Sharding, Sharding, Axes], float] = {}
        self._nests: dict[int, tuple[Rule, int, bool]] = {}  # by the rule's identity, which hashes fast
        self._links: dict[tuple[Axes, PrimeMesh], tuple[float, float]] = {}

    def send(self, count: int, axes: Axes, mesh: PrimeMesh) -> float:
        """A collective over ``axes`` by which a device receives ``count`` bytes."""
        if not count:
            return 0.0
        if self.profile is None or self.profile.is_flat:
            return count + self.latency
        latency, each = self._link(axes, mesh)
        return latency + each * count

    def move(self, array: Array, source: Sharding, target: Sharding, mesh: PrimeMesh) -> float:
        """A reshard by the default planner."""
        key = (array, source, target, mesh.manual)
        found = self._moves.get(key)
        if found is None and len(self._moves) == MOST_MOVES:
            self._moves.clear()
            self._least_moves.clear()
        if found is None and least_received(array, source, target, mesh) == (0, True):
            found = self._moves[key] = 0.0  # a slice
        if found is None:
            plan = redistribution(Reshard(Copy(0, source), target, array, mesh, 0, ""))
            if self.profile is None:
                found = sum(step.bytes + self.latency for step in plan.steps if step.is_collective)
            else:
                found = self.profile.seconds(plan.steps, sub_axes_of(mesh.mesh)) * self.profile.bandwidth
            self._moves[key] = found
        return found

    def least_move(self, array: Array, source: Sharding, target: Sharding, mesh: PrimeMesh) -> float:
        """What ``move`` does not fall below, without a profile: one collective. No redistribution is planned for it."""
        if self.profile is not None:
            return 0.0
        key = (array, source, target, mesh.manual)
        known = self._moves.get(key)
        if known is None:
            known = self._least_moves.get(key)
        if known is None:
            received, _ = least_received(array, source, target, mesh)
            known = self._least_moves[key] = received + self.latency if received else 0.0
        return known

    def work(self, rule: Rule, split: Split) -> float:
        """What an op with ``rule`` computes on one device under ``split``."""
        if rule.independent:  # no operand has anything to do with another: elements alone
            return sum([prod(tile) for tile in split.result_tiles]) * self.element
        if rule.in_part:
            return split.largest_beside_first * self.element
        nest, reduces = self._nest(rule)
        points = nest / split.count
        touched = min(points, split.largest_tile) if reduces else split.largest_result
        return max(points * self.point, touched * self.element)

    def least_work(self, rule: Rule, operands: Sequence[Shape], results: Sequence[Shape], parts: int) -> float:
        """What ``work`` never falls below, for splits into at most ``parts`` parts."""
        if rule.in_part:
            return 0.0
        made = [prod(shape) / parts for shape in results]
        if rule.independent:
            return sum(made) * self.element
        nest, reduces = self._nest(rule)
        points = nest / parts
        touched = max(made, default=0.0)
        if reduces:
            touched = min(points, max([touched, *[prod(shape) / parts for shape in operands]]))
        return max(points * self.point, touched * self.element)

    def _nest(self, rule: Rule) -> tuple[int, bool]:
        """Points of the loop nest of an op, and whether it reduces."""
        found = self._nests.get(id(rule))
        if found is None:
            points = prod([max(1, factor.size) for factor in rule.factors])
            reduces = any(factor.kind is Kind.REDUCTION for factor in rule.factors)
            if len(self._nests) == MOST_NESTS:
                self._nests.clear()
            found = self._nests[id(rule)] = (rule, points, reduces)  # which keeps the rule, and with it the identity
        return found[1:]

    def _link(self, axes: Axes, mesh: PrimeMesh) -> tuple[float, float]:
        """(latency, bytes for each byte) of a collective over ``axes``, in bytes of the profile's own link."""
        found = self._links.get((axes, mesh))
        if found is None:
            assert self.profile is not None
            groups, network = mesh.groups(axes), tiers(self.profile, sub_axes_of(mesh.mesh))

            def seconds(count: int) -> float:
                return step_seconds(Step(StepKind.ALL_GATHER, (), groups, (), (), count, 0), network)

            latency = seconds(0)
            each = (seconds(MANY) - latency) / MANY
            found = self._links[axes, mesh] = (latency * self.profile.bandwidth, each * self.profile.bandwidth)
        return found


DEFAULT = Machine()
SLOWER = Machine(latency=4 * LATENCY_BYTES)  # as ``DEFAULT``, where a collective takes longer to begin


@lru_cache(maxsize=8)
def machine_of(profile: Profile | None) -> Machine:
    """The one machine of ``profile``, which remembers what it has priced; programs share it."""
    return DEFAULT if profile is None else Machine(profile)
