"""The places that a suggestion may annotate: the sites (``places.sites``) without an annotation.

A search over a folded program (``fold``) decides the values that share a representative together, so the sites that
share a representative are one, and likewise arguments whose updates, the results of a step, share one. Its names are
patterns, ``p['layers'][*]['w1']``, where it has all arrays that fit the pattern.

Complexity: O(sites^2) at most, of which a program has few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from shardpass.advise.find.propose.program import ROOT
from shardpass.advise.place.sites import RESULT, Site, Sites, pattern
from shardpass.advise.place.specs import Spec
from shardpass.ops.splits.factors import DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.decide.problem import Problem
from shardpass.planning.price.fold import Folded


def arguments(sites: Sites, folded: Folded, states: Mapping[int, int]) -> list[Site]:
    """Return the arguments without annotations. ``states``: the place of the result that updates an argument."""
    keys, first = dict(enumerate(folded.of)), dict[int, int]()
    for value, place in states.items():
        keys[value] = folded.of[first.setdefault(folded.results[place], value)]
    free = [site for site in sites.arguments if not any(value in sites.program.annotations for value in site.values)]
    names = map(sites.names.of, sites.program.body.arguments)
    return _joined(free, lambda site: [(keys[value], folded.of[value]) for value in site.values], names)


def results(sites: Sites, folded: Folded) -> list[Site]:
    """Return the results without annotations."""
    rows = sites.program.result_annotations
    free = [site for site in sites.results if all(rows[place].sharding is None for place in site.positions)]
    return _joined(free, lambda site: [(folded.results[place],) for place in site.positions], sites.result_names)


def lines(sites: Sites) -> list[Site]:
    """Return the values that lines compute for other lines."""
    places = (sites.names.frame(op).place for op in sites.program.body.every_op())
    return list(sites.values(list(dict.fromkeys(replace(place, column=0) for place in places if place.line))))


def states(sites: Sites) -> Iterator[tuple[int, int]]:
    """Yield the arguments that a step updates, each with the place of its result: ``params`` and the new ``params``.

    These are donated arguments, and those whose type and keys are a result's: ``p['w']`` and ``result[1]['w']``, in
    their order. Pairs of which the user annotated either are left out.
    """
    program, body, names = sites.program, sites.program.body, sites.result_names
    donated = {result: body.arguments[place] for place, result in program.donated}
    keys_of = partial(ROOT.sub, "", count=1)  # ``['w']`` of ``p['w']``
    left = {value: keys_of(sites.names.of(value)) for value in body.arguments if value not in donated.values()}
    for place, (returned, annotation) in enumerate(zip(body.returned, program.result_annotations, strict=True)):
        array, keys = program.arrays[returned], keys_of(names[place])
        value = donated.get(place)
        if value is None:
            alike = (v for v, own in left.items() if own and keys.endswith(own) and program.arrays[v] == array)
            value = next(alike, None)
        if value is None:
            continue
        left.pop(value, None)
        if value not in program.annotations and annotation.sharding is None and program.arrays[value] == array:
            yield value, place


def _joined(sites: Iterable[Site], keys: Callable[[Site], Iterable[Iterable[int]]], names: Iterable[str]) -> list[Site]:
    """Merge the sites that share a key into one site each, directly or through other sites.

    ``names``: the names of all arguments, or of all results, of the program. A merged site that has all names of a
    pattern is named by that pattern.
    """
    fits = Counter(map(pattern, names))
    groups: list[tuple[set[int], list[Site]]] = []
    for site in sites:
        own, members = {key for some in keys(site) for key in some}, [site]
        for group in [one for one in groups if one[0] & own]:
            groups.remove(group)
            own, members = own | group[0], [*group[1], *members]
        groups.append((own, members))
    return sorted((_site(members, fits) for _, members in groups), key=lambda site: site.positions)


def _site(sites: Sequence[Site], fits: Mapping[str, int]) -> Site:
    """Return ``sites`` as one, with patterns for names where it has all that fit them (``fits``)."""
    rows = sorted(row for site in sites for row in zip(site.positions, site.values, site.names, strict=True))
    positions, values, names = zip(*rows, strict=True)
    here = Counter(map(pattern, names))
    whole = {one for one, count in here.items() if 1 < count == fits[one]}
    shown = tuple(pattern(name) if pattern(name) in whole else name for name in names)
    return replace(sites[0], names=shown, positions=positions, values=values)


def members(site: Site) -> tuple[int, ...]:
    """Return the values of ``site``, of results their places."""
    return site.positions if site.kind == RESULT else site.values


def each(site: Site) -> Iterator[tuple[int, Site]]:
    """Yield the members of ``site``, arguments or results, each with a site of its own."""
    for member, position, value, name in zip(members(site), site.positions, site.values, site.names, strict=True):
        yield member, replace(site, positions=(position,), values=(value,), names=(name,))


def slots(problem: Problem, site: Site) -> list[int]:
    """Return the values of the engine that ``site`` names."""
    folded, searched = problem.task.folded, problem.propagated
    if site.kind == RESULT:
        indices = [searched.results[folded.results[place]] for place in site.positions]
    else:
        indices = [searched.index.get(folded.of[value]) for value in site.values]
    return list(dict.fromkeys(index for index in indices if index is not None))


def sayable(dims: DimAxes, shape: tuple[int, ...], mesh: PrimeMesh) -> Spec:
    """Cut ``dims`` to the leading axes of each dimension that are whole axes of the mesh and divide ``shape``."""
    spec = []
    for axes, size in zip(dims, shape, strict=True):
        cuts = (axes[:length] for length in range(len(axes), 0, -1))
        whole = (mesh.refs(cut) for cut in cuts if size % mesh.count(cut) == 0)
        refs = next((refs for refs in whole if all(ref.size is None for ref in refs)), ())
        spec.append(tuple(ref.name for ref in refs))
    return tuple(spec)
