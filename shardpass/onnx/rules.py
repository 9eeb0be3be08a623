"""Check the rules of one stage: B1 to B6, M1 to M4, R1 to R3, U1 and U2 at once.

State: the layout of each term, the size of each label. Cases, for a label that several terms have:

1. B1 (M2 for a label that is summed over): terms that do not broadcast it cut it alike, over the same devices place by
   place. Device sets are compared, not their order, which the text leaves open.
2. B2: a term that broadcasts an axis of size 1 does not split it, and is on all devices that the stage's terms name.
3. B3: every iteration, a choice of one place along each label, needs one shard of each term; some device has all.

Then the result (B4 to B6, M3, M4, R2, R3, U2): an axis is cut as its label is; a label without terms that split it, or
that only stands for a reduced axis, is not cut; the devices of a shard are those that have all that one iteration
needs, united over the places along the labels that are summed over: every device of a reduction gets its result.

Worked example: [M,1] on {0,1}|{2,3} along M, [1,N] on {0,2}|{1,3} along N. Iteration (0,1) needs shard 0 of the first
and 1 of the second: {0,1} and {1,3} meet in {1}. The result is 2x2 on {0}{1}{2}{3}.

Cost: O(product of the counts of all labels * terms).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shardpass.onnx.layout import Devices, Layout
from shardpass.onnx.loops import Stage
from shardpass.onnx.model import Dim
from shardpass.sharding.notations.onnx_spec import SimpleSharding

Cut = tuple[int, tuple[SimpleSharding, ...]]
WHOLE: Cut = (1, ())


@dataclass(frozen=True, slots=True)
class Violation:
    """A violated rule. ``term``: the violating term, compared with ``other`` (None: with all)."""

    rule: str
    term: int
    other: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the terms in messages."""

    terms: Sequence[str]

    def axis(self, term: int, axis: int) -> str:
        return f"axis {axis} of '{self.terms[term]}'"


def violations(
    stage: Stage, layouts: Sequence[Layout], sizes: Mapping[str, Dim], shapes: Sequence[Sequence[Dim]], names: Names
) -> list[Violation]:
    """List violations of B1, M2 and B2; if there are none, of B3."""
    broken = []
    meeting = _meeting(stage, sizes, shapes)
    for label, axes in meeting.items():
        broken += _same(label in stage.contracted, layouts, axes, names)
    broken += _broadcast(stage, layouts, sizes, shapes, names)
    return broken or _composition(stage, layouts, _cuts(meeting, layouts), names, sizes, shapes)


Meeting = Mapping[str, Sequence[tuple[int, int]]]  # label -> (term, axis) that do not broadcast it


def _meeting(stage: Stage, sizes: Mapping[str, Dim], shapes: Sequence[Sequence[Dim]]) -> Meeting:
    meeting: dict[str, list[tuple[int, int]]] = {}
    for index, (term, shape) in enumerate(zip(stage.terms, shapes, strict=True)):
        for axis, (label, size) in enumerate(zip(term.labels, shape, strict=True)):
            if size != 1 or sizes[label] == 1:
                meeting.setdefault(label, []).append((index, axis))
    return meeting


def _cuts(meeting: Meeting, layouts: Sequence[Layout]) -> dict[str, Cut]:
    """Return the cut of each label by the term that cuts it most finely; under the rules all terms agree."""
    return {
        label: max((layouts[term].cut(axis) for term, axis in axes), key=lambda cut: cut[0])
        for label, axes in meeting.items()
    }


def _same(
    contracted: bool, layouts: Sequence[Layout], axes: Sequence[tuple[int, int]], names: Names
) -> list[Violation]:
    rule = "ONNX-M2" if contracted else "ONNX-B1"
    first = max(axes, key=lambda at: (layouts[at[0]].counts[at[1]], not layouts[at[0]].is_anywhere))
    broken = []
    for term, axis in axes:
        one, other = layouts[term], layouts[first[0]]
        if (term, axis) == first or other.counts[first[1]] == 1:
            continue
        mine, its = names.axis(term, axis), names.axis(*first)
        if one.cut(axis) != other.cut(first[1]):
            counts = one.counts[axis], other.counts[first[1]]
            reason = f"{mine} is in {_shards(counts[0])} and {its} in {_shards(counts[1])}"
            if counts[0] == counts[1]:
                reason = f"{mine} and {its} are fused of different sizes"
            broken.append(Violation(rule, term, first[0], reason))
        elif one.along(axis) != other.along(first[1]):
            place = next(
                k for k, (a, b) in enumerate(zip(one.along(axis), other.along(first[1]), strict=True)) if a != b
            )
            here, there = _set(one.along(axis)[place]), _set(other.along(first[1])[place])
            broken.append(Violation(rule, term, first[0], f"shard {place} of {mine} is on {here}, of {its} on {there}"))
    return broken


def _broadcast(
    stage: Stage, layouts: Sequence[Layout], sizes: Mapping[str, Dim], shapes: Sequence[Sequence[Dim]], names: Names
) -> list[Violation]:
    taking_part: Devices = frozenset().union(*(layout.devices for layout in layouts))
    broken = []
    for index, (term, shape, layout) in enumerate(zip(stage.terms, shapes, layouts, strict=True)):
        for axis, (label, size) in enumerate(zip(term.labels, shape, strict=True)):
            if size != 1 or sizes[label] == 1:
                continue
            if layout.counts[axis] > 1:
                reason = f"{names.axis(index, axis)}, of size 1, is broadcast, and in {_shards(layout.counts[axis])}"
                broken.append(Violation("ONNX-B2", index, None, reason))
            elif not layout.is_anywhere and layout.devices != taking_part:
                missing = _set(taking_part - layout.devices)
                reason = f"'{names.terms[index]}' is broadcast along its axis {axis}, and is not on {missing}"
                broken.append(Violation("ONNX-B2", index, None, reason))
            else:
                continue
            break
    return broken


def _composition(
    stage: Stage,
    layouts: Sequence[Layout],
    cuts: Mapping[str, Cut],
    names: Names,
    sizes: Mapping[str, Dim],
    shapes: Sequence[Sequence[Dim]],
) -> list[Violation]:
    for place in _iterations(cuts):
        needed = _needed(stage, layouts, place, sizes, shapes)
        if needed and not frozenset.intersection(*needed.values()):
            listed = " and ".join(f"'{names.terms[term]}' on {_set(devices)}" for term, devices in needed.items())
            at = ", ".join(f"{label} {k}" for label, k in place.items() if cuts[label][0] > 1)
            last = list(needed)[-1]
            return [Violation("ONNX-B3", last, None, f"no device holds all that shard ({at}) needs: {listed}")]
    return []


def _iterations(cuts: Mapping[str, Cut]) -> list[dict[str, int]]:
    places = itertools.product(*(range(cut[0]) for cut in cuts.values()))
    return [dict(zip(cuts, place, strict=True)) for place in places]


def _needed(
    stage: Stage,
    layouts: Sequence[Layout],
    place: Mapping[str, int],
    sizes: Mapping[str, Dim],
    shapes: Sequence[Sequence[Dim]],
) -> dict[int, Devices]:
    """Return, for each term that is not everywhere, the devices of the shard read by one iteration."""
    needed = {}
    for index, (term, layout, shape) in enumerate(zip(stage.terms, layouts, shapes, strict=True)):
        coordinates = tuple(
            0 if (size == 1 and sizes[label] != 1) or count == 1 else place[label]
            for label, size, count in zip(term.labels, shape, layout.counts, strict=True)
        )
        devices = layout.at(coordinates)
        if devices is not None:
            needed[index] = devices
    return needed


def inferred(
    stage: Stage, layouts: Sequence[Layout], sizes: Mapping[str, Dim], shapes: Sequence[Sequence[Dim]]
) -> Layout:
    """Return the layout of the result of a stage that breaks no rule."""
    cuts = _cuts(_meeting(stage, sizes, shapes), layouts)
    own = [cuts.get(label, WHOLE) for label in stage.result]
    counts = tuple(cut[0] for cut in own)
    if all(layout.is_anywhere for layout in layouts):
        return Layout(counts)
    devices: dict[tuple[int, ...], Devices] = {}
    for place in _iterations(cuts):
        needed = _needed(stage, layouts, place, sizes, shapes)
        shard = tuple(place.get(label, 0) for label in stage.result)
        devices[shard] = devices.get(shard, frozenset()) | frozenset.intersection(*needed.values())
    fused = tuple(cut[1] for cut in own)
    return Layout(
        counts,
        tuple(devices[shard] for shard in itertools.product(*map(range, counts))),
        fused if any(fused) else (),
    )


def required(
    stage: Stage,
    layouts: Sequence[Layout],
    term: int,
    sizes: Mapping[str, Dim],
    shapes: Sequence[Sequence[Dim]],
) -> Layout | None:
    """Return the layout of ``term`` required by the other terms; None if required everywhere."""
    others = [k for k in range(len(layouts)) if k != term and not layouts[k].is_anywhere]
    if not others:
        return None
    meeting = {label: [at for at in axes if at[0] != term] for label, axes in _meeting(stage, sizes, shapes).items()}
    cuts = _cuts({label: axes for label, axes in meeting.items() if axes}, layouts)
    mine = stage.terms[term].labels
    broadcast = [size == 1 and sizes[label] != 1 for label, size in zip(mine, shapes[term], strict=True)]
    own = [WHOLE if skip else cuts.get(label, WHOLE) for label, skip in zip(mine, broadcast, strict=True)]
    devices: dict[tuple[int, ...], Devices] = {}
    rest = [layout if k != term else Layout((1,) * len(mine)) for k, layout in enumerate(layouts)]
    for place in _iterations(cuts):
        needed = _needed(stage, rest, place, sizes, shapes)
        shard = tuple(0 if cut[0] == 1 else place[label] for label, cut in zip(mine, own, strict=True))
        devices[shard] = devices.get(shard, frozenset()) | frozenset.intersection(*needed.values())
    counts = tuple(cut[0] for cut in own)
    fused = tuple(cut[1] for cut in own)
    holders = tuple(devices[shard] for shard in itertools.product(*map(range, counts)))
    return Layout(counts, holders, fused if any(fused) else ())


def _shards(count: int) -> str:
    return "one piece" if count == 1 else f"{count} shards"


def _set(devices: Devices) -> str:
    return "{" + ",".join(map(str, sorted(devices))) + "}"
