"""Shardy's sharding attribute, both ways: ``#sdy.sharding<@m, [{"x", "y":(1)2, ?}, {}p1], replicated={"z"}>``.

Source: TensorShardingAttr of Shardy (shardy/dialect/sdy/ir/attrs.td). ``?`` leaves a dimension open to propagation,
``p1`` is its priority, ``"y":(1)2`` a sub-axis. The attribute names its mesh, so reading needs the module's meshes, or
holds it: ``#sdy.sharding<mesh<["x"=2, "y"=2], device_ids=[0,2,1,3]>, [{"x"}]>``. A mesh without axes whose device is
listed, ``<[], device_ids=[3]>``, means that device 3 holds the whole array.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.axes import Axes, check_disjoint, in_mesh_order
from shardpass.sharding.mesh import AxisRef, Mesh
from shardpass.sharding.model import Sharding
from shardpass.sharding.notations.reader import Reader, tokens_of
from shardpass.sharding.notes import Kind, Notes
from shardpass.sharding.quoting import STRING, mlir_quoted, mlir_unquoted

_TOKENS = tokens_of(rf"\#sdy\.sharding|@[\w.$-]+|@?{STRING}|p?\d+|[a-z_]+")
_BARE = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)  # a symbol that MLIR writes without quotes


def parse_sdy(text: str, meshes: Mapping[str, Mesh | int]) -> Sharding:
    """Parse ``#sdy.sharding<@mesh, [{"x"}, {?}], replicated={"y"}>``, over one of ``meshes`` by name.

    A number among ``meshes`` is a mesh of that device alone.

    Raises:
        ShardingParseError: ``text`` is no such attribute.
        ShardingError: it names a mesh or an axis that is not there, or uses an axis twice.
    """
    read = Reader(text, _TOKENS)
    read.next("#sdy.sharding")
    read.take("<")
    mesh_or_id = _mesh(read, meshes)
    mesh = Mesh(()) if isinstance(mesh_or_id, int) else mesh_or_id
    read.take(",")
    read.take("[")
    dims: list[Axes] = []
    opened: list[int] = []
    priorities: list[tuple[int, int]] = []
    for _ in read.several("]"):
        read.take("{")
        axes, is_open = _axes(read, mesh)
        if is_open:
            opened.append(len(dims))
        if re.fullmatch(r"p\d+", read.word):
            priorities.append((len(dims), int(read.match(r"p\d+", "p and a number")[1:])))
        dims.append(axes)
    by_word = _attributes(read, mesh)
    read.take(">")
    read.end()
    if isinstance(mesh_or_id, int):
        return Sharding.maximal(mesh_or_id)
    places = [(axes, f"dimension {k}") for k, axes in enumerate(dims)]
    check_disjoint(mesh, [*places, *((axes, word) for word, axes in by_word.items())], ones=True)
    replicated = in_mesh_order(mesh, by_word["replicated"])
    notes = Notes(open=tuple(opened), priorities=tuple(priorities), replicated=replicated)
    return Sharding.tiled(mesh, dims, unreduced=by_word["unreduced"]).replaced(notes=notes)


def mesh_or_device(axes: Iterable[tuple[str, int]], device_ids: Sequence[int]) -> Mesh | int:
    """Make the SDY mesh; return the device number if there are no axes and one device is listed.

    Raises:
        ShardingError: the axes and the devices are no mesh.
    """
    named = tuple(axes)
    if not named and len(device_ids) == 1:
        return device_ids[0]
    return Mesh(named, tuple(device_ids) or None)


def _mesh(read: Reader, meshes: Mapping[str, Mesh | int]) -> Mesh | int:
    if read.next("mesh"):
        return _inlined_mesh(read)
    quoted = read.match(rf"@(?:{STRING}|.+)", "@ and the name of a mesh, or mesh<...>")[1:]
    name = mlir_unquoted(quoted[1:-1]) if quoted[0] in "\"'" else quoted
    if name not in meshes:
        known = ", ".join("@" + n for n in meshes) or "none"
        raise table.MESH.error(message=f"there is no mesh @{name}; known: {known}", hint="define sdy.mesh first")
    return meshes[name]


def _inlined_mesh(read: Reader) -> Mesh | int:
    read.take("<")
    read.take("[")
    axes: list[tuple[str, int]] = []
    for _ in read.several("]"):
        name = mlir_unquoted(read.match(STRING, "an axis name in quotes")[1:-1])
        read.take("=")
        axes.append((name, int(read.match(r"\d+", "the size of the axis"))))
    ids: list[int] = []
    if read.next(","):
        read.take("device_ids")
        read.take("=")
        read.take("[")
        for _ in read.several("]"):
            ids.append(int(read.match(r"\d+", "the number of a device")))
    read.take(">")
    return mesh_or_device(axes, ids)


def _attributes(read: Reader, mesh: Mesh) -> dict[str, Axes]:
    """Read the axes of ``replicated={..}`` and ``unreduced={..}``, both optional."""
    attributes: dict[str, Axes] = {"replicated": (), "unreduced": ()}
    while read.next(","):
        word = read.match("replicated|unreduced", "replicated or unreduced")
        read.take("=")
        read.take("{")
        attributes[word], _ = _axes(read, mesh)
    return attributes


def _axes(read: Reader, mesh: Mesh) -> tuple[Axes, bool]:
    """Read the axes up to the closing brace, and whether a ``?`` follows them."""
    axes: list[AxisRef] = []
    is_open = False
    for _ in read.several("}"):
        if is_open:
            raise read.fault("'}' after '?'")
        if read.next("?"):
            is_open = True
            continue
        name = mlir_unquoted(read.match(STRING, "an axis name in quotes, or '?'")[1:-1])
        pre, size = 1, None
        if read.next(":"):
            read.take("(")
            pre = int(read.match(r"\d+", "an integer"))
            read.take(")")
            size = int(read.match(r"\d+", "an integer"))
        axes.append(mesh.ref(AxisRef(name, pre, size)))
    return tuple(axes), is_open


def sdy_text(sharding: Sharding, mesh_name: str = "mesh") -> str:
    """Format ``#sdy.sharding<@mesh, [..]>`` over the sharding's own mesh.

    Raises:
        ShardingError: SDY has no form for it (no mesh, or manual axes).
    """
    mesh = sharding.mesh
    if mesh is None or sharding.kind is not Kind.TILED or sharding.manual or sharding.maximal_axes:
        raise table.NO_TILES.error(
            sharding=str(sharding), why="#sdy.sharding names axes of a mesh, none of them manual", hint=""
        )
    priority = dict(sharding.notes.priorities)
    dims = []
    for k, axes in enumerate(sharding.dims):
        items = [_axis_text(a) for a in axes] + ["?"] * (k in sharding.notes.open)
        dims.append("{" + ", ".join(items) + "}" + (f"p{priority[k]}" if k in priority else ""))
    name = mesh_name if _BARE.fullmatch(mesh_name) else mlir_quoted(mesh_name)
    text = f"#sdy.sharding<@{name}, [{', '.join(dims)}]"
    for word, axes in (("replicated", sharding.notes.replicated), ("unreduced", sharding.unreduced)):
        if axes:
            text += f", {word}={{{', '.join(map(_axis_text, axes))}}}"
    return text + ">"


def _axis_text(axis: AxisRef) -> str:
    return mlir_quoted(axis.name) + axis.part
