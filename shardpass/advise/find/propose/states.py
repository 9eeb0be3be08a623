"""Edits of states and of families of arguments: a parameter, its moments, and the same weight of all layers.

1. A state (an argument beside one of the same shape and the same end of its path, as ``mu['w']`` beside
   ``params['w']``) gets the spec of its counterpart: one edit for all arrays of a state, and for its results.
2. An argument that is whole on every device and that a result updates gets the spec of the split arguments of its
   type: those of one root of paths together, and all together. Constraints that split nothing, as those of summed
   gradients, likewise.
3. Whole states are split over an axis, or over all, by the first dimension that divides (ZeRO).
4. An argument is split over one axis more, by its largest whole dimension that divides: all arrays of one root of
   paths together.
5. Parameters that a loop takes slices of, stacked along the first dimension and split there, are gathered whole before
   the loop. All states that are split there over one tuple of axes are split within the layer instead.
6. A tree that no result updates, whole beside a tree that is split, as a teacher's parameters beside the student's, is
   split as the leaves of that tree with the same end of their path.
7. Whole parameters and states that share the size of a dimension, as that of a vocabulary, are split there together: an
   embedding, the head and the moments of both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from shardpass.advise.find.propose.program import ROOT, Context, Edit, joined
from shardpass.advise.find.propose.specs import axes_of, divides, over, tile
from shardpass.advise.place.sites import ARGUMENT, Site
from shardpass.advise.place.specs import Spec
from shardpass.advise.place.write import Change

_TWO_STEPS = re.compile(r"^[^\[.]*(?:\[[^\]]*\]|\.\w+)?")
LARGE = 100  # an array of less than a hundredth of the largest is no part of "large"


def counterparts(context: Context) -> Iterator[Edit]:
    """Yield edits that give a state, all its arrays at once, the specs of its counterpart."""
    by_root: dict[object, list[Change]] = {}
    for site in context.sites.arguments:
        other = _counterpart(context, site)
        if site.spec is not None and other is not None and other.spec != site.spec:
            change = Change(site, other.spec)
            for root in dict.fromkeys((_prefix(site, other), _root(site), (_root(other),))):
                by_root.setdefault(root, []).append(change)
    for changes in sorted(by_root.values(), key=len, reverse=True):
        yield joined(context.with_results(change.site, change.spec or ()) for change in changes)


def twins(context: Context) -> Iterator[Edit]:
    """Yield edits that give whole states, or constraints that split nothing, the specs of the split arguments of their
    types.
    """
    split: dict[object, Spec] = {}
    for site in context.sites.arguments:
        if site.spec is not None and axes_of(site.spec):
            split.setdefault(site.array, site.spec)
    groups: dict[str, list[Edit]] = defaultdict(list)
    for site in _whole_states(context):
        if site.array in split:
            edit = context.with_results(site, split[site.array])
            for root in dict.fromkeys(("", _two_steps(site))):
                groups[root].append(edit)
    whole = (site for site in context.sites.constraints if not axes_of(site.spec) and site.array in split)
    groups["constraints"] = [(Change(site, split[site.array]),) for site in whole]
    yield from filter(None, map(joined, groups.values()))


def zero(context: Context) -> Iterator[Edit]:
    """Yield edits that split whole states over axes of the mesh."""
    axes = context.axes
    states = list(_whole_states(context))
    largest = max((site.array.bytes for site in states), default=0)
    groups: dict[object, list[Edit]] = defaultdict(list)
    for names in dict.fromkeys((tuple(axes), *((name,) for name in axes))):
        for site in states:
            specs = (over(names, site.array.rank, dim) for dim in range(site.array.rank))
            spec = next((one for one in specs if divides(one, site.array.shape, axes)), None)
            if spec is None:
                continue
            edit = context.with_results(site, spec)
            keys = [names, (names, _root(site)), (names, site.array)]
            keys += [(names, "large")] if site.array.bytes * LARGE >= largest else []
            for key in keys:
                groups[key].append(edit)
    yield from map(joined, groups.values())


def sizes(context: Context) -> Iterator[Edit]:
    """Yield edits that split, over one axis, the dimension of one size of all whole parameters and states."""
    groups: dict[tuple[int, str], list[Edit]] = defaultdict(list)
    saved: dict[tuple[int, str], int] = defaultdict(int)
    for site in _whole_states(context):
        for size, name in dict.fromkeys((size, name) for size in site.array.shape for name in context.axes):
            spec = over((name,), site.array.rank, site.array.shape.index(size))
            if divides(spec, site.array.shape, context.axes):
                groups[size, name].append(context.with_results(site, spec))
                saved[size, name] += site.array.bytes * len(site.positions)
    yield from (joined(groups[key]) for key in sorted(groups, key=lambda key: -saved[key]) if len(groups[key]) > 1)


def spread(context: Context) -> Iterator[Edit]:
    """Yield edits that split arguments over one axis more, those that save most memory first."""
    groups: dict[tuple[str, str], list[Edit]] = defaultdict(list)
    for site in context.sites.arguments:
        for name in context.axes.keys() - axes_of(site.spec):
            spec = _within(context, site, site.spec or ((),) * site.array.rank, (name,))
            if spec is not None:
                groups[name, _root(site)].append(context.with_results(site, spec))
    edits = {key: joined(edits) for key, edits in groups.items()}
    yield from (edits[key] for key in sorted(edits, key=lambda key: (-thinner(context, edits[key]), key)))


def stacked(context: Context) -> Iterator[Edit]:
    """Yield edits that split stacked parameters within the layer instead of along the first dimension.

    Either all axes move one dimension on, as of a spec that was written for one layer, or those of the first alone.
    """
    groups: dict[tuple[int, tuple[str, ...], bool], dict[Site, Spec]] = defaultdict(dict)
    for site in context.sites.arguments:
        spec, rank = site.spec or (), site.array.rank
        if rank > 1 and spec and spec[0] and site.array in context.state_types:
            moved = None if spec[-1] else ((), *spec[:-1])
            alone = _within(context, site, ((), *spec[1:]), spec[0], first=1)
            for is_moved, new in ((True, moved), (False, alone)):
                if new is not None and divides(new, site.array.shape, context.axes):
                    groups[site.array.shape[0], spec[0], is_moved][site] = new
    for specs in groups.values():
        if any(site.array.rank > 2 for site in specs):  # else these are matrices
            yield joined(context.with_results(*one) for one in specs.items())


def frozen(context: Context) -> Iterator[Edit]:
    """Yield edits that split whole arguments, which no result updates, as split ones of the same end of their paths."""
    updated = set(context.updated.values())
    split = [site for site in context.sites.arguments if axes_of(site.spec)]
    groups: dict[str, list[Edit]] = defaultdict(list)
    for site in context.sites.arguments:
        if axes_of(site.spec) or site in updated:
            continue
        alike = [one for one in split if one.array.rank == site.array.rank and _common(site.pattern, one.pattern)]
        for other in sorted(alike, key=lambda one: -_common(site.pattern, one.pattern)):
            if divides(other.spec or (), site.array.shape, context.axes):
                for root in dict.fromkeys((_prefix(site, other), _root(site))):
                    groups[root].append((Change(site, other.spec),))
                break
    yield from map(joined, sorted(groups.values(), key=len, reverse=True))


def _within(context: Context, site: Site, spec: Spec, axes: tuple[str, ...], first: int = 0) -> Spec | None:
    """Return ``spec`` with ``axes`` more on the largest whole dimension from ``first`` on that they divide, or None."""
    sizes = site.array.shape
    for dim in sorted(range(first, site.array.rank), key=lambda dim: -sizes[dim]):
        new = tuple(axes if place == dim else names for place, names in enumerate(spec))
        if not spec[dim] and sizes[dim] > 1 and divides(new, sizes, context.axes):
            return new
    return None


def thinner(context: Context, edit: Edit) -> float:
    """Return by how many bytes the arguments and results of ``edit`` shrink on a device."""
    return sum(
        (tile(one.site.array, one.site.spec, context.axes) - tile(one.site.array, one.spec, context.axes))
        * len(one.site.positions)
        for one in edit
    )


def _whole_states(context: Context) -> Iterator[Site]:
    """Yield the arguments that are whole on every device and of the type of a result."""
    for site in context.sites.arguments:
        if site.kind == ARGUMENT and not axes_of(site.spec) and site.array in context.state_types:
            yield site


def _root(site: Site) -> str:
    return ROOT.match(site.names[0])[0]  # type: ignore[index]


def _two_steps(site: Site) -> str:
    return _TWO_STEPS.match(site.names[0])[0]  # type: ignore[index]


def _counterpart(context: Context, site: Site) -> Site | None:
    """Return the argument of the same shape that is split more and shares the longest end of the path."""
    best, longest = None, 0
    for other in context.sites.arguments:
        if other is site or other.array is not site.array or other.spec is None or site.spec is None:
            continue
        if axes_of(other.spec) <= axes_of(site.spec):
            continue
        common = _common(site.pattern, other.pattern)
        if common > longest:
            best, longest = other, common
    return best


def _common(one: str, other: str) -> int:
    """Count the steps that two paths have in common at their end; 0 where both are one step."""
    steps, others = ([step for step in re.split(r"[\[.]", name) if step] for name in (one, other))
    count = 0
    while count < min(len(steps), len(others)) and steps[-1 - count] == others[-1 - count]:
        count += 1
    return count


def _prefix(site: Site, other: Site) -> str:
    """Return the part of a state's path in which it differs from its counterpart's."""
    common = _common(site.pattern, other.pattern)
    marks = [match.start() for match in re.finditer(r"[\[.]", site.pattern)]
    return site.pattern[: marks[-common]] if 0 < common <= len(marks) else site.pattern
