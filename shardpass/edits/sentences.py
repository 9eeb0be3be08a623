"""A finding as a sentence: what is wrong, and what the wrong costs, by the figure that falls most."""

from __future__ import annotations

from shardpass.edits.candidates import Edit
from shardpass.edits.jax_text import spec_text
from shardpass.edits.sites import ARGUMENT, CONSTRAINT, RESULT, VALUE, Spec
from shardpass.report.findings import ADD, DROP, REPLACE, Figures
from shardpass.report.text import show_bytes, show_flops

_MOST_NAMES = 3


def action_of(edit: Edit) -> str:
    """DROP, REPLACE or ADD, of the first change."""
    first = edit[0]
    if first.spec is None:
        return DROP
    return ADD if first.site.spec is None else REPLACE


def sentence(edit: Edit, before: Figures, after: Figures) -> str:
    """The mistake and its cost, without a place."""
    return f"{_subject(edit)} {_cost(before, after)}"


def _subject(edit: Edit) -> str:
    first = edit[0]
    site = first.site
    kinds = [change for change in edit if change.site.kind == site.kind]
    names = list(dict.fromkeys(f"`{change.site.pattern}`" for change in kinds))
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    named = ", ".join(names[:_MOST_NAMES]) + more
    now = spec_text(site.spec or ())
    if site.kind == CONSTRAINT:
        return f"the constraint of {named} to {now}"
    if site.kind == VALUE:
        return f"that nothing constrains {named}"
    if site.kind == RESULT and first.spec is None:
        return f"that out_shardings force {named} to {now}"
    role = {ARGUMENT: "in_shardings", RESULT: "out_shardings"}[site.kind]
    if first.spec is not None and site.spec is not None and _axes(site.spec) < _axes(first.spec):
        over = " and ".join(sorted(_axes(first.spec) - _axes(site.spec)))
        return f"that {role} do not split {named} over {over}"
    return f"that {role} say {now} of {named}"


def _axes(spec: Spec) -> frozenset[str]:
    return frozenset(name for names in spec for name in names)


def _cost(before: Figures, after: Figures) -> str:
    """The figures that fall, the one that falls most first, at most two."""
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
        return "costs time"
    words = [
        f"{show_flops(was - now)} of {show_flops(was)}"
        if name == "computed"
        else f"{show_bytes(was - now)} of {show_bytes(was)} {name}"
        for _, name, was, now in falls[:2]
    ]
    return f"costs {' and '.join(words)}"
