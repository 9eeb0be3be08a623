"""Model the seconds of collectives and work on a machine.

Links come in tiers, the innermost first: devices of one block of a tier (a host, a rack, a slice: neighbouring device
ids) have its link, and blocks are joined by the next. The last tier joins all. A collective over several tiers is done
in stages, one a tier, on all groups and devices at once: of what crosses from host to host each device of a host
carries its share, over its own network card.

    kind                          stage of a tier, m devices in all inner stages       time
    all_gather, reduce_scatter    the same kind, of whole / m                          the sum of the stages
    all_reduce                    the same kind, of whole / m, in chunks               the longest stage
    collective_broadcast          the same kind, of whole / m, in chunks               the longest stage
    all_to_all                    of the part of the operand for blocks up to here     the longest stage
    collective_permute            of whole, on the outermost tier that is crossed      that stage

NCCL does so: sums between hosts go up and down trees of hosts, chunk after chunk, while another chunk is added inside.
The latency is the sum of the tiers' in the first three, and else the greatest.

Work takes as long as its additions and multiplications at the rate of its element type, or as its bytes through memory:
the longer of the two (roofline). On a machine that says so a kernel takes as long as the vector unit needs for the
elements of its largest array, if that is longer, and some least time.

Example, hosts of 8 with 450 GB/s inside and 50 GB/s a device between: an all_gather of 8 GB over 32 hosts gathers 1 GB
on each device over its card, 31/32 of it from others, in 19.4 ms, and then 8 GB inside, 7/8 of it from others, in 15.6:
35 ms, 229 GB/s.
"""

from __future__ import annotations

import datetime
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from shardpass.cost.collective import ALL_GATHER, ALL_TO_ALL, PERMUTE, REDUCE_SCATTER, Axis, Collective
from shardpass.cost.links import Direct, Link, Switch, Torus, described, shown_rate
from shardpass.element_types import element_type

FOLDER = Path(__file__).parent / "machines"
MACHINES = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))
IN_TURN = (ALL_GATHER, REDUCE_SCATTER)


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a device.

    Attributes:
        flops: additions and multiplications.
        element: their element type, as MLIR or HLO spells it.
        bytes: memory reads and writes.
        elements: those of the kernel's largest array that pass through the vector unit; 0 for a part of another kernel.
            A product in HLO has those of a packed result, or 0; a product in a plan has 1.
        waits: how often a kernel waits for the memory of the device before or after all of its work.
        product: whether the kernel is a product in HLO.
    """

    flops: float
    element: str
    bytes: float
    elements: float = 0.0
    waits: float = 0.0
    product: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a number of a machine. ``date``: when the source was read, or the number measured."""

    of: str
    where: str
    date: datetime.date


@dataclass(frozen=True)
class Machine:
    """A machine, as its file under ``cost/machines`` describes it.

    Attributes:
        memory: bytes of a device.
        memory_bandwidth: bytes a second that a device reads or writes.
        flops: a second, by element type: "f32"; "f8" for all of that width.
        links: by tier, the innermost first.
        local: rates of the local work of redistributions (``redistribute.program.local_work``), where they are known.
        in_flight: collectives that run at once, at most, beside work; 0: none runs beside work.
        beside: by kind, the least bytes received of the collectives that run beside work, while others block; None: all
            run beside work.
        kernel: seconds that a kernel takes at least.
        elements: a second, that pass through the vector unit.
        product: seconds that the kernel of a product takes beyond its work and its waits.
    """

    name: str
    about: str
    memory: float
    memory_bandwidth: float
    flops: Mapping[str, float]
    links: tuple[Link, ...]
    local: Mapping[str, Any]
    sources: tuple[Source, ...]
    in_flight: int = 1  # XLA's default on all backends
    beside: Mapping[str, int] | None = None
    kernel: float = 0.0
    elements: float = math.inf
    product: float = 0.0

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        numbers = self.memory, self.memory_bandwidth, self.kernel, self.product
        return hash((self.name, *numbers, *self.flops.items(), *self.links))

    def __repr__(self) -> str:
        return f"<Machine {self.name}: {self.about}>"

    def _repr_html_(self) -> str:
        """Show the machine in notebooks: rates and links, with the sources below."""
        from shardpass.html_table import html_table

        size = "no limit" if self.memory == math.inf else f"{self.memory / 1e9:g} GB"
        rows: list[tuple[str, str]] = [
            ("memory of a device", f"{size}, {shown_rate(self.memory_bandwidth)}"),
            *((f"products of {element}", f"{rate / 1e12:g} Tflop/s") for element, rate in self.flops.items()),
            *((f"link of tier {tier}", described(link)) for tier, link in enumerate(self.links)),
        ]
        sources = "; ".join(f"{source.of}: {source.where} ({source.date})" for source in self.sources)
        return html_table(f"{self.name}: {self.about}", ("", ""), rows, sources)

    @property
    def memory_limit(self) -> int | None:
        """Bytes that may be alive on a device at the same time; None without a limit."""
        return int(self.memory) if math.isfinite(self.memory) else None

    @cached_property
    def starting_at_once(self) -> Machine:
        """The same machine with collectives that start in no time."""
        links = [
            replace(link, latency=0.0, hop=0.0) if isinstance(link, Torus) else replace(link, latency=0.0)
            for link in self.links
        ]
        return replace(self, links=tuple(links))

    def blocks(self, kind: str, received: int) -> bool:
        """Return whether a collective of ``kind`` with so many received bytes blocks all other work."""
        return self.beside is not None and received < self.beside.get(kind, math.inf)

    @property
    def is_torus(self) -> bool:
        """Return whether links lead only to neighbors, as on TPUs."""
        return isinstance(self.links[0], Torus)

    def joins_all(self, devices: int) -> bool:
        """Return whether one switch joins ``devices`` devices: then time depends only on the number of devices."""
        first = self.links[0]
        return isinstance(first, Switch) and (first.devices is None or devices <= first.devices)

    def least(self, received: int) -> float:
        """Return a lower bound in seconds of a collective by which some device receives ``received`` bytes."""
        if not received:
            return 0.0
        return min(link.latency for link in self.links) + received / max(link.most for link in self.links)

    def seconds(self, what: Collective | Work) -> float:
        """Model the seconds that a device takes for a collective or for work."""
        if isinstance(what, Work):
            through = max(what.bytes / self.memory_bandwidth, what.elements / self.elements)
            busy = max(what.flops / self.rate(what.element), through) + what.waits * self.kernel
            busy += what.product * self.product
            return max(busy, self.kernel) if what.elements else busy
        if not what.received:
            return 0.0
        stages = tuple(self._stages(what.axes))
        if what.kind == PERMUTE:
            stages = stages[-1:]
        parts = [one.link.seconds(what.kind, one.whole(what), one.sizes) for one in stages]
        starts = [one.link.start(one.sizes) for one in stages]
        start = max(starts) if what.kind == ALL_TO_ALL else sum(starts)
        return start + (sum(parts) if what.kind in IN_TURN else max(parts))

    def rate(self, element: str) -> float:
        """Return the flops per second for ``element``; if the machine has no such rate, that of the next wider type,
        or of the widest.
        """
        name = element.removeprefix("complex<").removesuffix(">").removeprefix("u")
        for given in (name, f"f{name[1]}" if name[:1] == "f" and not name[1:].isdigit() else name):
            if given in self.flops:
                return self.flops[given]
        width = element_type(element).bits // (2 if element.startswith("complex") else 1)
        widths = sorted((_width(given), rate) for given, rate in self.flops.items())
        return next((rate for bits, rate in widths if bits >= width), widths[-1][1])

    def _stages(self, axes: tuple[Axis, ...]) -> Iterator[_Stage]:
        left, inner = axes, 1
        for link in self.links:
            here = [_inside(axis, link.devices) for axis in left]
            left = tuple(Axis(axis.size // n, axis.stride * n) for axis, n in zip(left, here, strict=True))
            sizes = tuple(n for n in here if n > 1)
            if sizes:
                yield _Stage(link, sizes, inner)
                inner *= math.prod(sizes)


@dataclass(frozen=True, slots=True)
class _Stage:
    """A part of a collective: on ``link``, in groups of ``sizes``; ``inner`` devices were joined before."""

    link: Link
    sizes: tuple[int, ...]
    inner: int

    def whole(self, what: Collective) -> int:
        if what.kind == ALL_TO_ALL:
            return what.bytes * self.inner * math.prod(self.sizes) // what.devices
        return what.bytes if what.kind == PERMUTE else what.bytes // self.inner


def _inside(axis: Axis, block: int | None) -> int:
    """Count the neighbours along ``axis`` that are in one block of device ids in every group."""
    if block is None:
        return axis.size
    return math.gcd(axis.size, block // axis.stride) if block % axis.stride == 0 else 1


def _width(element: str) -> int:
    return int(element.lstrip("bfi"))


def find_machine(name: str) -> Machine:
    """Return the machine named ``name``. Raises KeyError for an unknown name."""
    if name not in MACHINES:
        raise KeyError(name)
    return _read(name)


@lru_cache(maxsize=64)
def _read(name: str) -> Machine:
    return from_table(tomllib.loads((FOLDER / f"{name}.toml").read_text()))


def from_table(data: Mapping[str, Any]) -> Machine:
    """Build the machine that parsed TOML describes. Raises KeyError, TypeError or ValueError for any other
    ``data``.
    """
    links = tuple(_link(row) for row in data["links"])
    sizes = [math.inf if link.devices is None else link.devices for link in links]
    if sizes != sorted(set(sizes)) or sizes[-1] != math.inf:
        raise ValueError("each link joins more devices than the one before, and the last one all")
    return Machine(
        data["name"],
        data["about"],
        float(data["memory"]),
        float(data["memory_bandwidth"]),
        {element: float(rate) for element, rate in data["flops"].items()},
        links,
        data.get("local", {}),
        tuple(Source(**row) for row in data["sources"]),
        data.get("in_flight", 1),
        data.get("beside"),
        float(data.get("kernel", 0)),
        float(data.get("elements", math.inf)),
        float(data.get("product", 0)),
    )


def _link(row: Mapping[str, Any]) -> Link:
    fields = {name: value for name, value in row.items() if name != "kind"}
    fields.setdefault("devices", None)
    match row["kind"]:
        case "torus":
            return Torus(**{**fields, "shape": tuple(fields["shape"])})
        case "direct":
            return Direct(**fields)
        case "switch":
            return Switch(**fields)
    raise ValueError(f"{row['kind']!r} is no kind of link")


IDEAL = find_machine("ideal")  # by which rooms below the doors decide, where no machine is named
