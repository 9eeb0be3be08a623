"""Edits of sets of annotations that share a tuple of axes, as a name in the user's text would.

Users write ``BATCH = ("data",)`` once and use it in many annotations. So a tuple of axes becomes another one wherever
constraints and batches have it, and two axes of one dimension change their order everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import permutations

from shardpass.advise.find.propose.program import Context, Edit
from shardpass.advise.find.propose.specs import divides
from shardpass.advise.place.sites import Site
from shardpass.advise.place.specs import Spec
from shardpass.advise.place.write import Change

Names = tuple[str, ...]


def renames(context: Context) -> Iterator[Edit]:
    """Yield edits that replace one tuple of axes in all constraints and batches, or in one of both."""
    updated = set(context.updated.values())
    batches = [site for site in context.sites.arguments if site.spec is not None and site not in updated]
    constraints = list(context.sites.constraints)
    for sites in ([*constraints, *batches], constraints, batches):
        for names in dict.fromkeys(names for site in sites for names in site.spec or () if names):
            more = [(*names, axis) for axis in context.axes if axis not in names]
            other = [(axis,) for axis in context.axes if (axis,) != names]
            for new in (*more, *other, ()):
                changes = [Change(site, _renamed(site, names, new)) for site in sites if names in (site.spec or ())]
                fitting = [one for one in changes if divides(one.spec or (), one.site.array.shape, context.axes)]
                if fitting:
                    yield tuple(fitting)


def orders(context: Context) -> Iterator[Edit]:
    """Yield edits that reorder the axes of one dimension: everywhere, in the signature, or for one type."""
    signature = [*context.sites.arguments, *context.sites.results]
    every = [*signature, *context.sites.constraints]
    for names in dict.fromkeys(names for site in every for names in site.spec or () if len(names) > 1):
        for other in permutations(names):
            if other == names:
                continue

            def reordered(sites: list[Site], names: Names = names, other: Names = other) -> Edit:
                return tuple(Change(site, _ordered(site, names, other)) for site in sites if names in (site.spec or ()))

            by_type = defaultdict(list)
            for site in signature:
                by_type[site.array].append(site)
            yield from filter(None, map(reordered, (every, signature, list(context.sites.constraints))))
            yield from filter(None, (reordered(some) for some in by_type.values() if len(by_type) > 1))


def _renamed(site: Site, names: Names, new: Names) -> Spec:
    """Return the site's spec with ``new`` in the place of ``names``; axes of ``new`` leave other dimensions."""
    kept = (tuple(axis for axis in some if axis not in new) if some != names else new for some in site.spec or ((),))
    return tuple(kept)


def _ordered(site: Site, names: Names, other: Names) -> Spec:
    return tuple(other if some == names else some for some in site.spec or ())
