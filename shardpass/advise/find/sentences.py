"""Describe a finding in a sentence: the mistake, and its cost in the figure that improves most."""

from __future__ import annotations

from dataclasses import replace

from shardpass.advise.find.propose.program import Edit
from shardpass.advise.find.propose.specs import axes_of
from shardpass.advise.place.sites import ARGUMENT, BORDER, CAST, CHUNKS, CONSTRAINT, CUT, MESH, RESULT, VALUE
from shardpass.advise.place.specs import spec_text
from shardpass.advise.place.write import Change, mesh_sizes
from shardpass.report.findings import ADD, DROP, REPLACE, Figures
from shardpass.report.text import show_bytes, show_flops

_MOST_NAMES = 3


def action_of(edit: Edit) -> str:
    """Return the action of the edit's first change: DROP, REPLACE or ADD."""
    first = edit[0]
    if first.spec is None:
        return DROP
    return ADD if first.site.spec is None else REPLACE


def sentence(
    edit: Edit,
    before: Figures,
    after: Figures,
    clause: str = "",
    helper: tuple[str, int] = ("", 0),
    *,
    placed: bool = False,
) -> str:
    """Describe the mistake and its cost, without a place. ``clause``: about the array (``kinds``), ``of which
    ...``. ``helper``: the function whose constraint the edit changes for several calls, and their number. ``placed``:
    whether arguments have their shardings by no in_shardings.
    """
    first, cost = edit[0], cost_of(before, after)
    site = first.site
    alike = [change.site for change in edit if change.site.kind == site.kind]
    if site.kind == VALUE:  # of one expression the first array alone
        alike = list({one.frame: one for one in reversed(alike)}.values())[::-1]
    names = list(dict.fromkeys(f"`{one.pattern}`" for one in alike))
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    named, now = ", ".join(names[:_MOST_NAMES]) + more, spec_text(site.spec or ())
    named += f", {clause}," if clause else ""
    if site.kind == CONSTRAINT and helper[0]:
        return f"the constraint in {helper[0]}(), in all {helper[1]} calls, costs {cost}"
    if site.kind == CONSTRAINT:
        return f"the constraint of {named} to {now} costs {cost}"
    if site.kind == CUT:
        size, (axis,) = site.array.shape[site.cut], (first.spec or ())[site.cut]
        at = ", ".join(str(end) for _, end in site.pieces if end < size)
        return f"the cut of {named} at {at} of {size} misses the borders of its shards over {axis}, which costs {cost}"
    if site.kind == CHUNKS:
        count, size = site.pieces[0][1], site.array.shape[0]
        return f"the {count} chunks of {named} are cut along the {size} rows that devices share, which costs {cost}"
    if site.kind == BORDER:
        return f"in_specs take {named} as {now}, placed as {spec_text(first.spec or ())}, which costs {cost}"
    if site.kind == MESH:
        return f"the mesh has {specs_of(first)[0]}, which costs {cost}"
    if site.kind == CAST:
        return f"{named}, of {site.array.element}, is cast to a wider type before it is moved, which costs {cost}"
    if site.kind == VALUE:
        return f"{named} has no constraint, which costs {cost}"
    if first.spec is None:
        return f"out_shardings force {named} to {now}, which costs {cost}"
    missing = " and ".join(sorted(axes_of(first.spec) - axes_of(site.spec)))
    is_split_more = missing and axes_of(site.spec) < axes_of(first.spec)
    if placed and site.kind == ARGUMENT:
        how = f"not split over {missing}" if is_split_more else f"placed as {now}"
        return f"{named} {'are' if len(names) > 1 else 'is'} {how}, which costs {cost}"
    role = {ARGUMENT: "in_shardings", RESULT: "out_shardings"}[site.kind]
    how = f"do not split {named} over {missing}" if is_split_more else f"have {named} as {now}"
    return f"{role} {how}, which costs {cost}"


def specs_of(change: Change) -> tuple[str, str]:
    """Return the texts of the annotation before and after ``change``, "" for none; of a mesh the sizes of its axes."""
    specs = change.site.spec, change.spec
    if change.site.kind == MESH:
        sizes = (mesh_sizes(replace(change, spec=spec)) for spec in specs)
        before, after = (", ".join(f"{name}={size}" for name, size in some) for some in sizes)
    else:
        before, after = ("" if spec is None else spec_text(spec) for spec in specs)
    return before, after


def cost_of(before: Figures, after: Figures) -> str:
    """Describe at most two figures that fall, in the order of their relative fall."""
    falls = []
    for name, was, now in (
        ("received", before.bytes, after.bytes),
        ("held", before.memory, after.memory),
        ("computed", before.flops, after.flops),
    ):
        if was > 0 and now < was * 0.98:
            falls.append(((was - now) / was, name, was, now))
    falls.sort(reverse=True)
    if not falls:
        return "time"
    words = [
        f"{show_flops(was - now)} of {show_flops(was)}"
        if name == "computed"
        else f"{show_bytes(was - now)} of {show_bytes(was)} {name}"
        for _, name, was, now in falls[:2]
    ]
    return " and ".join(words)
