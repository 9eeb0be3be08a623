"""Classify edits: about a size that devices do not divide, a table with looked-up rows, or only an annotation.

Both are read off the imported program: sizes from the array and the axes of the annotation, lookups from the gathers
whose operand is the argument.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from shardpass.advise.find.propose.program import Edit
from shardpass.advise.find.propose.specs import over
from shardpass.advise.find.propose.written import FEWEST_SPLIT
from shardpass.advise.place.padding import uneven
from shardpass.advise.place.sites import ARGUMENT, MESH, Site, Sites
from shardpass.advise.place.specs import Spec
from shardpass.program.program import OpKind
from shardpass.report.findings import ANNOTATION, LOOKUP, UNEVEN
from shardpass.report.rows import short
from shardpass.report.text import show_bytes

_PASSED_ON = frozenset({"stablehlo.convert", "stablehlo.reshape", "stablehlo.optimization_barrier"})


class Kinds:
    """Classifies the edits of one program."""

    def __init__(self, sites: Sites) -> None:
        self.axes: Mapping[str, int] = dict(sites.program.mesh.mesh.axes)
        self.looked_up = _looked_up(sites)

    def of(self, edit: Edit) -> tuple[str, str]:
        """Return the kind of ``edit``, and a clause that names the size or the lookup; ANNOTATION has none."""
        site, spec = edit[0].site, edit[0].spec
        if site.kind == MESH:
            return ANNOTATION, ""
        padding = self._padding(site) or (self._whole(site, spec) if spec is not None else "")
        if padding:
            return UNEVEN, padding
        if site.kind == ARGUMENT and self.looked_up.intersection(site.values):
            return LOOKUP, "in which rows are looked up"
        return ANNOTATION, ""

    def _padding(self, site: Site) -> str:
        """Describe an annotation that splits unevenly: the size, the tiles, and the padding; "" for any other."""
        for one in uneven(site.spec or (), site.array.shape, self.axes) if site.spec else ():
            waste = f"{one.padded - one.size} of {one.padded} are padding, {show_bytes(one.wasted(site.array))}"
            return f"of which dimension {one.dim} is {one.size}, in tiles of {one.padded // one.shards} ({waste})"
        return ""

    def _whole(self, site: Site, spec: Spec) -> str:
        """Name the dimension of a whole argument that an axis of ``spec`` does not divide; "" if there is none."""
        if site.kind != ARGUMENT:
            return ""
        before = {name for names in site.spec or () for name in names}
        for name in dict.fromkeys(name for names in spec for name in names if name not in before):
            shards = self.axes[name]
            for dim, size in enumerate(site.array.shape):
                if shards > 1 and size % shards and size >= FEWEST_SPLIT * shards:
                    (one,) = uneven(over((name,), site.array.rank, dim), site.array.shape, self.axes)
                    more = show_bytes(one.wasted(site.array))
                    return f"of which dimension {dim} is {size}, no multiple of {shards} (padding it takes {more})"
        return ""


def misfit(sites: Sites, lines: Collection[tuple[str, int]]) -> str:
    """Name the first reshape at ``lines`` that divides a split dimension into parts whose number the axis does not
    divide, as 6 heads over 4 devices, with the numbers that it would; "" if there is none.
    """
    split = {
        (size, name)
        for site in sites.arguments
        for size, names in zip(site.array.shape, site.spec or (), strict=False)
        for name in names
    }
    for op in sites.program.body.every_op():
        place = sites.names.frame(op).place
        if op.name != "stablehlo.reshape" or (place.file, place.line) not in lines or sites.names.is_backward(op):
            continue
        whole, parts = (sites.program.array(value).shape for value in (op.operands[0], op.results[0]))
        if len(parts) != len(whole) + 1:
            continue
        for dim, size in enumerate(whole):
            if whole[:dim] + whole[dim + 1 :] != parts[:dim] + parts[dim + 2 :]:
                continue
            for name, shards in sites.program.mesh.mesh.axes:
                count = parts[dim]
                if (size, name) in split and size % shards == 0 and count % shards:
                    fitting = [str(one) for one in (count // shards * shards, -(-count // shards) * shards) if one]
                    made = f"{short(place)} makes {count} x {parts[dim + 1]} of {size} over {name}={shards}"
                    return f"{made}: {count} is no multiple of {shards}, as {' or '.join(fitting)} would be"
    return ""


def _looked_up(sites: Sites) -> frozenset[int]:
    """Return the arguments that are the table of a gather, directly or through ops that pass them on."""
    made_by = sites.names.makers
    result = set()
    for op in sites.program.body.every_op():
        if op.name != "stablehlo.gather":
            continue
        value = op.operands[0]
        while value in made_by and (made_by[value].name in _PASSED_ON or made_by[value].kind is OpKind.CONSTRAINT):
            value = made_by[value].operands[0]
        result.add(value)
    return frozenset(result)
