"""Links between the devices of a machine, and the time of a collective's bytes on a link, without latency.

A *stage* is the part of a collective that goes over one kind of link: ``whole`` bytes (``cost.collective``) in groups
along some mesh axes. Three kinds of links, b the bandwidth:

1. Switch: a device receives b from any others at once. Where the switch adds, an all_reduce has a rate of its own.
2. Direct: a link of b between any two devices, so that a device of a group of g receives (g-1) b.
3. Torus: a link of b each way between neighbours along each dimension of the torus. A mesh axis lies along a dimension;
   one that is longer than the longest dimension, along as many as it needs. Gathers and sums go round all rings of the
   group at once, both ways: 2b for each ring, and b where the ring is open, as its last device is no neighbour of the
   first. A permute goes over one link. An all_to_all is bounded by the links of its longest ring of n devices: blocks
   travel n/4 links on average, either way, so that each link carries an eighth of n times the operand; twice that where
   the ring is open. XLA:TPU scatters sums along one dimension, or two of which one is 2 long; over others it compiles a
   reduce_scatter as an all_reduce (docs/howto/accelerators.md).

Example: an all_gather on a torus with b = 100 GB/s over one mesh axis of 16 receives 200 GB/s, over three 600. An
all_to_all of 64 MB over the 16 takes 64 MB * 16/8 / b = 1.28 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from shardpass.cost.collective import ALL_REDUCE, ALL_TO_ALL, PERMUTE, REDUCE_SCATTER, bytes_received


@dataclass(frozen=True, slots=True)
class Switch:
    """A link through which every device reaches every other at full bandwidth. ``devices``: the number of devices
    joined; None: all. ``latency``: seconds of an empty collective.
    """

    devices: int | None
    latency: float
    bandwidth: float
    all_reduce: float | None = None

    def start(self, sizes: Sequence[int]) -> float:
        return self.latency

    def seconds(self, kind: str, whole: int, sizes: Sequence[int]) -> float:
        rate = self.all_reduce if kind == ALL_REDUCE and self.all_reduce else self.bandwidth
        return bytes_received(kind, whole, prod(sizes)) / rate

    @property
    def most(self) -> float:
        """The most bytes a second that a device receives."""
        return max(self.bandwidth, self.all_reduce or 0.0)


@dataclass(frozen=True, slots=True)
class Direct:
    """Links from each device to every other device of its block. ``devices``: the size of a block. ``bandwidth``:
    the bytes per second of one link, in each direction.
    """

    devices: int
    latency: float
    bandwidth: float

    def start(self, sizes: Sequence[int]) -> float:
        return self.latency

    def seconds(self, kind: str, whole: int, sizes: Sequence[int]) -> float:
        links = 1 if kind == PERMUTE else prod(sizes) - 1
        return bytes_received(kind, whole, prod(sizes)) / (links * self.bandwidth)

    @property
    def most(self) -> float:
        return self.bandwidth * (self.devices - 1)


@dataclass(frozen=True, slots=True)
class Torus:
    """Links to neighbors in a grid of devices. ``shape``: the largest grid; a program may use a part of it.
    ``wrap``: dimensions whose length is a multiple of this are closed to rings.

    ``hop``: seconds from neighbour to neighbour. ``bandwidth``: of one link, each way.
    """

    devices: int | None
    latency: float
    bandwidth: float
    shape: tuple[int, ...]
    wrap: int
    hop: float

    def start(self, sizes: Sequence[int]) -> float:
        return self.latency + self.hop * sum(n / 2 if closed else n - 1 for n, closed in self._rings(sizes))

    def seconds(self, kind: str, whole: int, sizes: Sequence[int]) -> float:
        rings = self._rings(sizes)
        if kind == PERMUTE:
            return whole / self.bandwidth
        if kind == ALL_TO_ALL:
            return max(whole * n / (8 if closed else 4) for n, closed in rings) / self.bandwidth
        links = sum(2 if closed else 1 for _, closed in rings)
        sent_as = ALL_REDUCE if kind == REDUCE_SCATTER and not self._scatters(sizes) else kind
        return bytes_received(sent_as, whole, prod(sizes)) / (links * self.bandwidth)

    def _scatters(self, sizes: Sequence[int]) -> bool:
        """Return whether sums over mesh axes of these ``sizes`` can be scattered round one ring."""
        left, extents = prod(sizes), []
        for length in sorted(self.shape, reverse=True):
            if left > 1:
                extents.append(min(left, length))
                left = -(-left // length)
        return len(extents) < 2 or (len(extents) == 2 and extents[1] == 2)

    @property
    def most(self) -> float:
        return 2 * self.bandwidth * len(self.shape)

    def _rings(self, sizes: Sequence[int]) -> list[tuple[float, bool]]:
        """Return, for each torus dimension in use, the number of devices and whether the ring is closed."""
        rings: list[tuple[float, bool]] = []
        for size in sizes:
            count = self._folds(size)
            closed = count > 1 or size % self.wrap == 0
            rings += [(size ** (1 / count), closed)] * count
        return rings if len(rings) <= len(self.shape) else self._rings_of_all(prod(sizes))

    def _folds(self, size: int) -> int:
        """Count the dimensions of the torus that a mesh axis of ``size`` spans."""
        longest = sorted(self.shape, reverse=True)
        return next((k for k in range(1, len(longest)) if prod(longest[:k]) >= size), len(longest))

    def _rings_of_all(self, devices: int) -> list[tuple[float, bool]]:
        """Handle more mesh axes than dimensions: the axes share all dimensions."""
        side = devices ** (1 / len(self.shape))
        return [(side, side >= self.wrap)] * len(self.shape)


Link = Switch | Direct | Torus


def described(link: Link) -> str:
    """Describe a link in words: the number of devices, the bandwidth and the latency."""
    latency = f"{link.latency * 1e6:g} us"
    if isinstance(link, Torus):
        ring = f"a torus, {shown_rate(link.bandwidth)} a link, rings of {link.wrap} or a multiple closed"
        return f"{ring}, {latency} and {link.hop * 1e6:g} us a hop"
    among = "all" if link.devices is None else str(link.devices)
    if isinstance(link, Direct):
        return f"{among} devices: {shown_rate(link.bandwidth)} between any two, {latency}"
    sums = f" ({shown_rate(link.all_reduce)} in an all_reduce)" if link.all_reduce else ""
    return f"{among} devices: {shown_rate(link.bandwidth)}{sums}, {latency}"


def shown_rate(rate: float) -> str:
    """Format ``rate``, in bytes a second, with a unit."""
    return f"{rate / 1e12:g} TB/s" if rate >= 1e12 else f"{rate / 1e9:g} GB/s"
