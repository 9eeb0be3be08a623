"""The bytes that the collectives of a compiled program move: one counter for programs of any partitioner.

Read from the text of optimised HLO. Bytes are added up for each device, and the greatest sum counts; own data is not
counted. Of a permute its targets receive alone, of other collectives all devices, with the shapes as printed (those of
a device) and g devices in a group; the blocks that a device keeps, result / g, are rounded down to a byte:

    all-gather, all-to-all  result - result / g   reduce-scatter      result * (g-1)
    collective-permute      result                all-reduce          2 * (result - result / g)
    collective-broadcast    result

shardpass/ir/collectives.py has the same formulas for StableHLO. Both are kept and share no code: they are two
witnesses of one number, from the program that shardpass writes and from the one that XLA makes of it, and tests
compare them.

Cases: a while body counts once for each trip where XLA knows how many, or its condition has one constant, else once; of
a conditional's branches, the one that receives most; a collective over groups of one device, or a permute from each
device to itself, is none. XLA:TPU's fusions are counted by what is inside: "all-reduce-scatter" is an all-reduce of
which each device keeps its slice, and of the fusions of one asynchronous collective only the one that starts it
counts. Of XLA:GPU's send and recv the latter counts.
With ``scattered`` an all-reduce of which each device keeps its slice alone counts as the reduce-scatter that XLA makes
of it on GPU and TPU (tools/bench/hlo_slices.py): half as much.

Cost: one pass over the text, one over the graph of computations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from tools.bench.hlo_slices import Slices, read_op

BITS = {"pred": 8, "token": 0}
_SHAPE = re.compile(r"\b([a-z]+[0-9]*(?:e[0-9]+m[0-9]+[a-z0-9]*)?)\[([0-9,]*)\]")
_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{\s*$")
_OP = re.compile(
    r"^\s*(?:ROOT )?%?[\w.\-]+ = (?P<type>\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\S+) (?P<op>[\w\-]+)\((?P<rest>.*)$"
)
_KINDS = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "ragged-all-to-all",
    "collective-broadcast",
    "collective-permute",
    "reduce-scatter",
)


EVERY = -1


@dataclass(frozen=True, slots=True)
class Traffic:
    """``by_kind``: (kind, how many, bytes), most bytes first; ``unknown_loops``: how many count as one trip."""

    bytes: int
    collectives: int
    by_kind: tuple[tuple[str, int, int], ...]
    unknown_loops: int


@dataclass(slots=True)
class _Sum:
    """Of a computation: by kind, how many collectives, and the bytes by device; ``EVERY`` stands for all devices."""

    counts: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, dict[int, int]] = field(default_factory=dict)
    unknown: int = 0

    def put(self, kind: str, size: int, receivers: Iterable[int] = (EVERY,)) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        sums = self.sizes.setdefault(kind, {})
        for device in receivers:
            sums[device] = sums.get(device, 0) + size

    def add(self, other: _Sum, times: int = 1) -> None:
        for kind, count in other.counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + times * count
            sums = self.sizes.setdefault(kind, {})
            for device, size in other.sizes[kind].items():
                sums[device] = sums.get(device, 0) + times * size
        self.unknown += other.unknown

    def bytes(self, *kinds: str) -> int:
        """What the device receives that receives most by these kinds."""
        sums: dict[int, int] = {}
        for kind in kinds:
            for device, size in self.sizes[kind].items():
                sums[device] = sums.get(device, 0) + size
        return sums.pop(EVERY, 0) + max(sums.values(), default=0)


def traffic(hlo: str, devices: int, *, scattered: bool = False) -> Traffic:
    """Counts what ``hlo``, compiled for ``devices`` partitions, moves in one run."""
    computations, entry = _computations(hlo)
    _drop_continued(computations)
    known: dict[str, _Sum] = {}
    slices = Slices(computations) if scattered else None

    def count(name: str) -> _Sum:
        if name not in known:
            known[name] = found = _Sum()
            for line in computations.get(name, ()):
                if slices is None or not _count_sliced(line, name, found, slices, devices):
                    _count_line(line, name, computations, found, count, devices)
        return known[name]

    total = count(entry)
    rows = sorted(((k, n, total.bytes(k)) for k, n in total.counts.items()), key=lambda row: -row[2])
    return Traffic(total.bytes(*total.counts), sum(total.counts.values()), tuple(rows), total.unknown)


def _computations(hlo: str) -> tuple[dict[str, list[str]], str]:
    found: dict[str, list[str]] = {}
    entry, lines = "", None
    for line in hlo.splitlines():
        if not line.startswith((" ", "\t")) and (head := _HEAD.match(line)):
            lines = found.setdefault(head[2], [])
            entry = head[2] if head[1] else entry
        elif lines is not None:
            if line.startswith("}"):
                lines = None
            else:
                lines.append(re.sub(r"/\*.*?\*/", "", line))
    return found, entry


def _drop_continued(computations: dict[str, list[str]]) -> None:
    """Removes the fused collectives that another fusion started: those of its channel."""
    channels: dict[str, str] = {}
    for name, lines in computations.items():
        if any("ROOT" in line and '"AsyncCollectiveStart"' in line for line in lines):
            channels |= dict.fromkeys(re.findall(r"channel_id=\d+", "".join(lines)), name)
    fused = {
        name for lines in computations.values() for line in lines for name in re.findall(r"calls=%?([\w.\-]+)", line)
    }
    for name in fused & computations.keys():
        lines = computations[name]
        lines[:] = [
            line
            for line in lines
            if not (channel := re.search(r"channel_id=\d+", line)) or channels.get(channel[0], name) == name
        ]


def _count_line(
    line: str,
    computation: str,
    computations: Mapping[str, list[str]],
    found: _Sum,
    count: Callable[[str], _Sum],
    devices: int,
) -> None:
    match = _OP.match(line)
    if match is None:
        return
    op, rest = match["op"].removesuffix("-start"), match["rest"]
    if op == "recv" and "source_target_pairs=" in rest:
        op = "collective-permute"
    if op in _KINDS:
        size = _size(match["type"], match["op"] not in (op, "all-reduce-start"))  # whose type is of results alone
        if op == "all-reduce" and computation.startswith("all-reduce-scatter"):
            op, size = "reduce-scatter", size // group_size(rest, devices)
        if match["op"] == "recv":
            size = _size(match["type"].partition("]")[0] + "]", False)
        if op == "collective-permute":
            if receivers := _targets(rest):
                found.put(op, size, receivers)
        elif (received := _received(op, size, group_size(rest, devices))) is not None:
            found.put(op, received)
    elif op == "while":
        trips = _trips(rest, computations)
        for name in re.findall(r"(?:condition|body)=%?([\w.\-]+)", rest):
            inner = count(name)
            if trips is None and inner.counts:
                found.unknown += 1
            found.add(inner, trips or 1)
            for line in computations.get(name, ()) if trips else ():
                if "last_iteration_noop" in line and (kept := re.search(r"true_computation=%?([\w.\-]+)", line)):
                    found.add(count(kept[1]), -1)  # a windowed einsum sends nothing in its last trip
    elif op == "conditional":
        names = re.findall(r"(?:true_computation|false_computation)=%?([\w.\-]+)", rest)
        if several := re.search(r"branch_computations=\{([^}]*)\}", rest):
            names = [name.strip().lstrip("%") for name in several[1].split(",")]
        found.add(max((count(name) for name in names), key=lambda s: s.bytes(*s.counts), default=_Sum()))
    elif op in ("call", "fusion", "async"):
        for called in re.findall(r"(?:to_apply|calls)=%?([\w.\-]+)", rest):
            found.add(count(called))


def _trips(loop: str, computations: Mapping[str, list[str]]) -> int | None:
    """The trips that XLA knows; or the one number in a condition that only counts from 0, over its step."""
    if known := re.search(r'"known_trip_count":\{"n":"(\d+)"\}', loop):
        return int(known[1])
    condition, body = (
        "\n".join(computations.get(name[1], [])) if (name := re.search(rf"{part}=%?([\w.\-]+)", loop)) else ""
        for part in ("condition", "body")
    )
    numbers = re.findall(r"= [su]32\[\]\S* constant\((\d+)\)", condition)
    counter = re.search(r"get-tuple-element\([^)]*\), index=(\d+)", condition)
    if len(numbers) != 1 or counter is None or " and(" in condition:
        return None
    returned = re.search(r"ROOT [^\n]* tuple\(([^)]*)\)", body)
    names = returned[1].split(", ") if returned else []
    value = re.escape(names[int(counter[1])]) if int(counter[1]) < len(names) else "-"
    added = re.search(rf"{value} = [su]32\[\]\S* add\([^,]*, (%[\w.\-]+)\)", body)
    step = re.search(rf"{re.escape(added[1])} = \S* constant\((\d+)\)", body) if added else None
    return -(-int(numbers[0]) // (int(step[1]) if step else 1))


def _count_sliced(line: str, computation: str, found: _Sum, slices: Slices, devices: int) -> bool:
    """Counts an all-reduce some of whose elements are sliced; False for every other op."""
    op = read_op(line)
    if op is None or op.op != "all-reduce" or (group := group_size(op.rest, devices)) == 1:
        return False
    sliced = slices.sliced(computation, op.name, group)
    sizes = [_size(f"{kind}[{dims}]", False) for kind, dims in _SHAPE.findall(op.type)]
    for kind, parts, times in (("reduce-scatter", True, 1), ("all-reduce", False, 2)):
        size = sum(size for size, one in zip(sizes, sliced, strict=True) if one is parts)
        if size:
            found.put(kind, times * (size - size // group))
    return True


def _size(type_text: str, started: bool) -> int:
    """Bytes of a result; of an asynchronous start, of the half that is the result, before its contexts."""
    shapes = _SHAPE.findall(type_text)
    for _ in range(2):
        if started and len(shapes) > 2 and shapes[-1] in (("u32", ""), ("s32", "")):
            shapes.pop()
    if started and len(shapes) > 1:
        shapes = shapes[len(shapes) // 2 :]
    return sum(-(-prod(int(n) for n in dims.split(",") if n) * _bits(kind) // 8) for kind, dims in shapes)


def _bits(kind: str) -> int:
    """f32, s8, bf16, c64 and f8e4m3fn say it in their first number."""
    number = re.search(r"\d+", kind)
    return BITS[kind] if number is None else int(number[0])


def _targets(rest: str) -> list[int]:
    """The devices to which another sends."""
    pairs = re.search(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}", rest)
    found = re.findall(r"\{(\d+),(\d+)\}", pairs[1] if pairs else "")
    return [int(target) for source, target in found if source != target]


def _received(op: str, size: int, group: int) -> int | None:
    """What a device of a group receives; None where it is alone."""
    if group == 1:
        return None
    others = size - size // group
    return {"all-reduce": 2 * others, "reduce-scatter": size * (group - 1), "collective-broadcast": size}.get(
        op, others
    )


def group_size(attributes: str, devices: int) -> int:
    """The size of a replica group in any of the texts that XLA prints; no groups is everybody."""
    if match := re.search(r"replica_groups=\{\{([\d,]*)\}", attributes):
        return match[1].count(",") + 1
    if match := re.search(r"replica_groups=\[(\d+),(\d+)\]<=", attributes):
        return int(match[2])
    if match := re.search(r"replica_groups=mesh\[([^\]]*)\][^{]*\{([^}]*)\}", attributes):
        sizes = {name: int(n) for name, n in re.findall(r"'([^']+)'=(\d+)", match[1])}
        parts = re.findall(r"'([^']+)'(?::\(\d+\)(\d+))?", match[2])
        return prod(int(size) if size else sizes[name] for name, size in parts)
    return devices
