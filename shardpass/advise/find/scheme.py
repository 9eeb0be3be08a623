"""Measure how an edit changes the user's scheme: more of an array on each device, or an array split elsewhere.

An edit gives up a part of the scheme where an annotated argument or result, or a constraint on an array of a state's
type, has larger tiles: it replicates a batch, or undoes ZeRO or FSDP. So does a constraint that loses an axis of the
batches, as one on the microbatches of a loop. It moves an array where the tiles stay as large
and are others: checkpoints and other programs that take the array change too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardpass.advise.find.propose.program import Context, Edit
from shardpass.advise.find.propose.specs import axes_of, tile
from shardpass.advise.place.sites import ARGUMENT, CONSTRAINT, MESH, VALUE
from shardpass.advise.place.specs import Spec
from shardpass.advise.place.write import Change
from shardpass.report.text import show_bytes

LARGER = 1.001
MOST_NAMES = 3


def harm(context: Context, edit: Edit) -> int:
    """Return the additional bytes of a device that ``edit`` causes for arrays that the user's scheme splits."""
    return _more(context, _given_up(context, edit))


def label(context: Context, edit: Edit) -> str:
    """Return a clause with bytes that describes how an edit changes the scheme; "" if it does not."""
    lost = [change for change in _given_up(context, edit) if change.site.kind in (ARGUMENT, CONSTRAINT)]
    if lost:
        return f"the edit gives up splits: {show_bytes(_more(context, lost))} more of {_names(lost)} on each device"
    moved = list(_moved(context, edit))
    return f"the edit splits {_names(moved)} otherwise, wherever it is placed" if moved else ""


def moves(context: Context, edit: Edit) -> bool:
    """Return whether ``edit`` splits an argument that is split along another dimension, or over other axes."""
    return any(True for _ in _moved(context, edit))


def is_unfounded(context: Context, edit: Edit) -> bool:
    """Return whether ``edit`` moves the axes of a batch to another dimension, though no other batch is split so; or
    lets a split dimension of a constraint take over an axis of another one, as data parallelism for tensor parallelism.

    That a weight has a dimension of that size, split over these axes, is no reason.
    """
    edited = {change.site for change in edit}
    every = (*context.sites.arguments, *context.sites.results, *context.sites.constraints)
    split = {
        (axis, size)
        for site in every
        if site not in edited and site.array not in context.state_types
        for size, names in zip(site.array.shape, site.spec or (), strict=False)
        for axis in names
    }
    for change in edit:
        site, spec = change.site, change.spec or ()
        if site.kind == CONSTRAINT and _takes_over(site.spec or (), spec):
            return True
        is_batch = site.kind == ARGUMENT and site.spec and site.spec[0] and site.array not in context.state_types
        if is_batch and spec and not spec[0]:
            moved = [(axis, size) for size, names in zip(site.array.shape, spec, strict=True) for axis in names]
            if moved and not split.issuperset(moved):
                return True
    return False


def _takes_over(before: Spec, after: Spec) -> bool:
    """Return whether a split dimension keeps its axes and gets one that split another dimension."""
    grown = (set(new) - set(old) for old, new in zip(before, after, strict=False) if old and set(old) < set(new))
    return any(not axes_of(before).isdisjoint(axes) for axes in grown)


def _moved(context: Context, edit: Edit) -> Iterator[Change]:
    for change in edit:
        if change.site.kind == MESH or (change.site.kind == ARGUMENT and _is_moved(context, change)):
            yield change


def _more(context: Context, changes: Iterable[Change]) -> int:
    """Return by how many bytes the tiles of ``changes`` grow on a device."""
    return round(sum(_grows(context, change) * max(1, len(change.site.positions)) for change in changes))


def _given_up(context: Context, edit: Edit) -> Iterator[Change]:
    for change in edit:
        site, spec = change.site, change.spec
        if site.kind in (VALUE, MESH) or site.spec is None or not axes_of(site.spec):
            continue
        lost = axes_of(site.spec) - axes_of(spec) if spec is not None else frozenset()
        is_state = site.array in context.state_types or lost & context.batch_axes
        if not is_state if site.kind == CONSTRAINT else spec is None:
            continue
        if _grows(context, change) > 0:
            yield change


def _grows(context: Context, change: Change) -> float:
    """Return by how many bytes a tile grows; 0 where it hardly does."""
    array, axes = change.site.array, context.axes
    before, after = tile(array, change.site.spec, axes), tile(array, change.spec, axes)
    return after - before if after > before * LARGER else 0.0


def _is_moved(context: Context, change: Change) -> bool:
    """Return whether an array that is split is split along another dimension or over other axes, in tiles as large at
    least, and not over fewer axes.
    """
    before, after = change.site.spec, change.spec
    if not before or after is None or not axes_of(before) or change.padded is not None:
        return False
    array, axes = change.site.array, context.axes
    return (
        before != after
        and not axes_of(after) < axes_of(before)
        and tile(array, after, axes) >= tile(array, before, axes) / LARGER
    )


def _names(changes: list[Change]) -> str:
    names = list(dict.fromkeys(f"`{change.site.pattern}`" for change in changes))
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more
