"""The edits that are tried: of one annotation each, the user's own first.

1. A constraint is dropped.
2. An annotation of results is that of the arguments that they update; of other results it is dropped. An argument and
   the result that updates it stay alike: a loop hands the one on as the other, and would reshard in between.
3. A state (an argument beside one of the same shape and the same end of its path, as ``mu['w']`` beside
   ``params['w']``) has the sharding of its counterpart: one edit for all arrays of the state, and for its results.
4. Arguments that nothing splits and no result updates are split by their first dimension, all of one size together.
5. An argument with a size that no axis divides is padded and split over an axis there (``padding``).
6. An argument, or a constraint, has one axis more, one less, one elsewhere, two exchanged, or none. Arguments that
   collectives name come first, then those that no result updates (batches), then the largest.
7. Of ``decided``: a constraint, or a value that an expression stands for at the lines that send most, is constrained
   as planning decides with constraints open; such a value also over one axis.

Otherwise sizes that axes do not divide are left out: JAX refuses them in arguments.

Complexity: O(sites x axes x dimensions).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import permutations

from shardpass.advise.padding import padded_shape
from shardpass.advise.sites import ARGUMENT, RESULT, Site, Sites, Spec
from shardpass.advise.write import Change
from shardpass.diagnostics import Place
from shardpass.program.program import Array, Program
from shardpass.sharding import Sharding

Edit = tuple[Change, ...]

MOST_PADDED = 3  # arguments for which padding is tried
FEWEST_SPLIT = 8  # elements of a dimension for each device, for padding to be tried

_ROOT = re.compile(r"^[^\[.]*")
_FIRST_INDEX = re.compile(r"^\[\d+\]")


class Candidates:
    """Lists the edits of one program that may save.

    ``lines``: those that send most, in descending order. ``arrays``: the names of the arrays that collectives send.
    """

    def __init__(self, sites: Sites, lines: Sequence[Place], arrays: Collection[str]) -> None:
        self.sites, self.program, self.lines, self.arrays = sites, sites.program, lines, arrays
        self.axes = {name: size for name, size in sites.program.mesh.mesh.axes if size > 1}
        self.updated = dict(_updates(sites))  # by result, the argument

    def written(self) -> Iterator[Edit]:
        """Yields edits of the user's annotations, without duplicates."""
        yield from _different(self._written())

    def decided(self, shardings: Mapping[int, Sharding]) -> Iterator[Edit]:
        """Yields edits that give constraints, existing and new, the specs that ``shardings`` have for their values."""
        yield from _different(self._decided(shardings))

    def chosen(self, shardings: Mapping[int, Sharding], results: Sequence[Sharding | None]) -> Iterator[Edit]:
        """Yields annotations for arguments, results and values at the lines that have none, after ``shardings``."""
        for site in (*self.sites.arguments, *self.sites.results, *self.sites.values(self.lines)):
            spec = self.spec_in(site, shardings, results)
            if site.spec is None and spec is not None:
                yield (Change(site, spec),)

    def _written(self) -> Iterator[Edit]:
        constraints = self.sites.constraints
        for site in constraints:
            yield (Change(site, None),)
        yield from self._states()
        yield from self._updated()
        for site in self._forced():
            yield (Change(site, None),)
        yield from self._batches()
        arguments = sorted((one for one in self.sites.arguments if one.spec is not None), key=self._urgency)
        choices = [self._choices(site) for site in arguments]
        choices[1:1] = [self._choices(site) for site in constraints]
        yield from _one_of_each([*choices[:1], *(self._padded(site) for site in arguments[:MOST_PADDED]), *choices[1:]])

    def _decided(self, shardings: Mapping[int, Sharding]) -> Iterator[Edit]:
        values = tuple(self.sites.values(self.lines))
        for site in (*self.sites.constraints, *values):
            spec = self.spec_in(site, shardings)
            if spec is not None and (site.spec is not None or any(spec)):
                yield (Change(site, spec),)
        yield from _one_of_each(self._choices(site) for site in values)

    # ---------------------------------------------------------------- of one site

    def _choices(self, site: Site) -> Iterator[Edit]:
        specs = variants(site.spec or ((),) * site.array.rank, site.array.shape, self.axes)
        for spec in specs:
            if site.kind != ARGUMENT:
                yield (Change(site, spec),)
                continue
            yield (Change(site, spec), *self._results_of(site, spec))

    def _padded(self, site: Site) -> Iterator[Edit]:
        """Yields edits that pad a dimension of an argument which an unused axis does not divide, and split it there."""
        spec, shape = site.spec or ((),) * site.array.rank, site.array.shape
        if site.array.element.mlir.startswith("complex"):
            return  # of which the bindings make no zero
        unused = [(name, size) for name, size in self.axes.items() if name not in _axes(spec)]
        for name, size in unused:
            for dim in range(site.array.rank):
                if shape[dim] % size and shape[dim] >= FEWEST_SPLIT * size and not spec[dim]:
                    split = _with(spec, dim, name)
                    padded = padded_shape(split, shape, self.axes)
                    yield (Change(site, split, padded), *self._results_of(site, split, padded))

    def _results_of(self, site: Site, spec: Spec, padded: tuple[int, ...] | None = None) -> Iterator[Change]:
        """Yields the changes that give the results that update ``site``, an argument, its new ``spec``."""
        for result, argument in self.updated.items():
            if argument is site and result.spec == site.spec:
                yield Change(result, spec, padded)

    def spec_in(
        self, site: Site, shardings: Mapping[int, Sharding], results: Sequence[Sharding | None] = ()
    ) -> Spec | None:
        """Returns the spec that most values of ``site`` have; None where whole axes do not express or divide it.

        ``results``: the shardings of main's results.
        """
        counts: Counter[Spec] = Counter()
        rank = site.array.rank
        if site.kind == RESULT:
            shardings_of = [results[position] for position in site.positions if position < len(results)]
        else:
            shardings_of = [shardings.get(value) for value in site.values]
        for sharding in shardings_of:
            whole = _whole(sharding, rank, self.program)
            if whole is not None:
                counts[whole] += 1
        spec = counts.most_common(1)[0][0] if counts else None
        return spec if spec is not None and _divides(spec, site.array.shape, self.axes) else None

    def _urgency(self, site: Site) -> tuple[bool, bool, int]:
        named = any(site.pattern.startswith(name) or name.startswith(site.names[0]) for name in self.arrays if name)
        updated = any(result.array is site.array for result in self.sites.results)
        return not named, updated, -site.array.bytes * len(site.positions)

    # ---------------------------------------------------------------- of several

    def _states(self) -> Iterator[Edit]:
        """Yields edits that give a state, all its arrays at once, the specs of its counterpart."""
        by_root: dict[str, list[Change]] = {}
        for site in self.sites.arguments:
            other = self._counterpart(site)
            if site.spec is not None and other is not None and other.spec != site.spec:
                change = Change(site, other.spec)
                for root in dict.fromkeys((_prefix(site, other), _ROOT.match(site.names[0])[0])):  # type: ignore[index]
                    by_root.setdefault(root, []).append(change)
        for changes in sorted(by_root.values(), key=len, reverse=True):
            results = [one for change in changes for one in self._results_of(change.site, change.spec or ())]
            yield (*changes, *dict.fromkeys(results))

    def _batches(self) -> Iterator[Edit]:
        """Yields edits that split unsplit arguments that no result updates by their first dimension.

        All arguments whose first dimension has one size are split together: over one axis, or over all unused axes.
        """
        used = {name for one in (*self.sites.arguments, *self.sites.constraints) for name in _axes(one.spec or ())}
        free = tuple(name for name in self.axes if name not in used)
        results = {result.array for result in self.sites.results}
        batches: dict[int, list[Site]] = {}
        for one in self.sites.arguments:
            if one.spec is not None and not any(one.spec) and one.array not in results:
                batches.setdefault(one.array.shape[0], []).append(one)
        for batch in batches.values():
            for axes in dict.fromkeys((*((name,) for name in self.axes), free)):
                specs = [(axes, *((),) * (one.array.rank - 1)) for one in batch]
                if axes and all(
                    _divides(spec, one.array.shape, self.axes) for one, spec in zip(batch, specs, strict=True)
                ):
                    yield tuple(Change(one, spec) for one, spec in zip(batch, specs, strict=True))

    def _counterpart(self, site: Site) -> Site | None:
        """Returns the argument of the same shape that is split more and shares the longest end of the path."""
        best, longest = None, 0
        for other in self.sites.arguments:
            if other is site or other.array is not site.array or other.spec is None or site.spec is None:
                continue
            if _axes(other.spec) <= _axes(site.spec):
                continue
            common = _common(site.pattern, other.pattern)
            if common > longest:
                best, longest = other, common
        return best

    def _updated(self) -> Iterator[Edit]:
        """Yields one edit that gives all results the sharding of the arguments that they update."""
        changes = [
            Change(result, site.spec)
            for result, site in self.updated.items()
            if result.spec is not None and site.spec is not None and site.spec != result.spec
        ]
        if changes:
            yield tuple(changes)
        whole = tuple(Change(site, None) for site in self._forced() if not any(site.spec or ()))
        if len(whole) > 1:
            yield whole

    def _forced(self) -> Iterator[Site]:
        """Yields annotated results, except updates of annotated arguments, whose sharding the next step expects."""
        for site in self.sites.results:
            argument = self.updated.get(site)
            if site.spec is not None and (argument is None or argument.spec is None):
                yield site


def _updates(sites: Sites) -> Iterator[tuple[Site, Site]]:
    """Yields results with the arguments that they update: of one type and one end of the path, paired in order.

    Of ``step(params, mu, nu)`` that returns three trees, the second is the new ``mu``. The first index of a result is
    one of a tuple of trees, or of the one list that is returned.
    """
    alike: dict[tuple[Array, str], list[Site]] = {}
    for argument in sites.arguments:
        for name in argument.names:
            alike.setdefault((argument.array, _ROOT.sub("", name, count=1)), []).append(argument)
    for result in sites.results:
        path = result.names[0].removeprefix("result")
        left = alike.get((result.array, path)) or alike.get((result.array, _FIRST_INDEX.sub("", path)))
        if left:
            yield result, left.pop(0)


def variants(spec: Spec, shape: Sequence[int], axes: Mapping[str, int]) -> Iterator[Spec]:
    """Yields specs like ``spec``: with an axis more, less or elsewhere, another axis, two axes exchanged, and
    no axis.
    """
    used = [(dim, name) for dim, names in enumerate(spec) for name in names]
    rank = len(shape)
    specs: list[Spec] = []
    for name in axes:
        if all(name != other for _, other in used):
            specs += [_with(spec, dim, name) for dim in range(rank)]
    for dim, name in used:
        without = _without(spec, name)
        specs += [_with(without, dim, other) for other in axes if all(other != known for _, known in used)]
        specs += [_with(without, other, name) for other in range(rank) if other != dim]
    for (first, one), (second, other) in permutations(used, 2):
        if first < second:
            specs.append(_with(_with(_without(_without(spec, one), other), first, other), second, one))
    specs += [_without(spec, name) for _, name in used]
    specs.append(((),) * rank)
    yield from (one for one in dict.fromkeys(specs) if one != spec and _divides(one, shape, axes))


def _different(edits: Iterable[Edit]) -> Iterator[Edit]:
    """Yields the edits that change an annotation, without duplicates."""
    seen: set[object] = set()
    for edit in edits:
        key = tuple((change.site.kind, change.site.names, change.site.place, change.spec) for change in edit)
        if key not in seen and any(change.spec != change.site.spec for change in edit):
            seen.add(key)
            yield edit


def _one_of_each(lists: Iterable[Iterator[Edit]]) -> Iterator[Edit]:
    """Yields the first edit of each list, then the second edit of each list, and so on."""
    left = [iter(one) for one in lists]
    while left:
        kept = []
        for one in left:
            edit = next(one, None)
            if edit is not None:
                kept.append(one)
                yield edit
        left = kept


def _with(spec: Spec, dim: int, name: str) -> Spec:
    return tuple((*names, name) if place == dim else names for place, names in enumerate(spec))


def _without(spec: Spec, name: str) -> Spec:
    return tuple(tuple(one for one in names if one != name) for names in spec)


def _axes(spec: Spec) -> frozenset[str]:
    return frozenset(name for names in spec for name in names)


def _divides(spec: Spec, shape: Sequence[int], axes: Mapping[str, int]) -> bool:
    for names, size in zip(spec, shape, strict=True):
        for name in names:
            if size % axes.get(name, 1):
                return False
            size //= axes.get(name, 1)
    return True


def _whole(sharding: Sharding | None, rank: int, program: Program) -> Spec | None:
    """Returns ``sharding`` by whole axes, without parts of axes; None where axes of the mesh cannot express it."""
    dims = None if sharding is None else program.mesh.dims(sharding, rank)
    if dims is None:
        return None
    refs = [program.mesh.refs(axes) for axes in dims]
    return tuple(tuple(ref.name for ref in some if ref.size is None) for some in refs)


def _common(one: str, other: str) -> int:
    """Counts the steps that two paths have in common at their end; 0 where both are one step."""
    steps, others = ([step for step in re.split(r"[\[.]", name) if step] for name in (one, other))
    count = 0
    while count < min(len(steps), len(others)) and steps[-1 - count] == others[-1 - count]:
        count += 1
    return count


def _prefix(site: Site, other: Site) -> str:
    """Returns the part of a state's path in which it differs from its counterpart's."""
    common = _common(site.pattern, other.pattern)
    marks = [match.start() for match in re.finditer(r"[\[.]", site.pattern)]
    return site.pattern[: marks[-common]] if 0 < common <= len(marks) else site.pattern
