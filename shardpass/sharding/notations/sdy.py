"""Shardy's sharding attribute, both ways: ``#sdy.sharding<@m, [{"x", "y":(1)2, ?}, {}p1], replicated={"z"}>``.

Source: TensorShardingAttr of Shardy (shardy/dialect/sdy/ir/attrs.td). ``?`` leaves a dimension open to propagation,
``p1`` is its priority, ``"y":(1)2`` a sub-axis. The attribute names its mesh, so reading needs the module's meshes, or
holds it: ``#sdy.sharding<mesh<["x"=2, "y"=2], device_ids=[0,2,1,3]>, [{"x"}]>``. A mesh without axes whose device is
listed, ``<[], device_ids=[3]>``, means that device 3 holds the whole array.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.axes import Axes, check_disjoint, in_mesh_order
from shardpass.sharding.errors import ShardingParseError, fault
from shardpass.sharding.mesh import AxisRef, Mesh
from shardpass.sharding.model import Sharding
from shardpass.sharding.notes import Kind, Notes
from shardpass.sharding.quoting import STRING, mlir_quoted, mlir_unquoted

_TOKEN = re.compile(rf"\s*(?P<token>\#sdy\.sharding|@[\w.$-]+|@?{STRING}|p?\d+|[a-z_]+|[<>\[\]{{}}(),:=?])", re.ASCII)
_BARE = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)  # a symbol that MLIR writes without quotes


@dataclass(slots=True)
class _Reader:
    text: str
    at: int = 0

    def peek(self) -> str:
        match = _TOKEN.match(self.text, self.at)
        return match["token"] if match else ""

    def next(self, *wanted: str) -> str | None:
        """Take the next token if it is one of ``wanted``."""
        match = _TOKEN.match(self.text, self.at)
        if match and match["token"] in wanted:
            self.at = match.end()
            return match["token"]
        return None

    def need(self, wanted: str) -> None:
        if self.next(wanted) is None:
            raise self.fault(repr(wanted))

    def match(self, pattern: str, what: str) -> str:
        match = _TOKEN.match(self.text, self.at)
        if match is None or not re.fullmatch(pattern, match["token"]):
            raise self.fault(what)
        self.at = match.end()
        return match["token"]

    def name(self, what: str) -> str:
        return mlir_unquoted(self.match(STRING, what)[1:-1])

    def fault(self, expected: str) -> ShardingParseError:
        at = self.at
        while at < len(self.text) and self.text[at].isspace():
            at += 1
        actual = repr(self.peek() or self.text[at : at + 1]) if at < len(self.text) else "the end of the text"
        return fault(table.SYNTAX, self.text, at, expected=expected, found=actual, hint="")

    def several(self, close: str) -> Iterator[None]:
        """Yield before each item of a comma-separated list up to ``close``."""
        if self.next(close):
            return
        while True:
            yield
            if self.next(close):
                return
            if self.next(",") is None:
                raise self.fault(f"',' or {close!r}")


def parse_sdy(text: str, meshes: Mapping[str, Mesh | int]) -> Sharding:
    """Parse ``#sdy.sharding<@mesh, [{"x"}, {?}], replicated={"y"}>``, over one of ``meshes`` by name.

    A number among ``meshes`` is a mesh of that device alone.

    Raises:
        ShardingParseError: ``text`` is no such attribute.
        ShardingError: it names a mesh or an axis that is not there, or uses an axis twice.
    """
    read = _Reader(text)
    read.next("#sdy.sharding")
    read.need("<")
    mesh_or_id = _mesh(read, meshes)
    mesh = Mesh(()) if isinstance(mesh_or_id, int) else mesh_or_id
    read.need(",")
    read.need("[")
    dims: list[Axes] = []
    opened: list[int] = []
    priorities: list[tuple[int, int]] = []
    for _ in read.several("]"):
        read.need("{")
        axes, is_open = _axes(read, mesh)
        if is_open:
            opened.append(len(dims))
        if re.fullmatch(r"p\d+", read.peek()):
            priorities.append((len(dims), int(read.match(r"p\d+", "p and a number")[1:])))
        dims.append(axes)
    by_word = _attributes(read, mesh)
    read.need(">")
    if text[read.at :].strip():
        raise read.fault("the end")
    if isinstance(mesh_or_id, int):
        return Sharding.maximal(mesh_or_id)
    places = [(axes, f"dimension {k}") for k, axes in enumerate(dims)]
    check_disjoint(mesh, [*places, *((axes, word) for word, axes in by_word.items())], ones=True)
    replicated = in_mesh_order(mesh, by_word["replicated"])
    notes = Notes(open=tuple(opened), priorities=tuple(priorities), replicated=replicated)
    return Sharding.tiled(mesh, dims, unreduced=by_word["unreduced"]).replaced(notes=notes)


def mesh_or_device(axes: Iterable[tuple[str, int]], device_ids: Sequence[int]) -> Mesh | int:
    """Make SDY's mesh; or returns the number of the device, if there are no axes and one device is listed.

    Raises:
        ShardingError: the axes and the devices are no mesh.
    """
    named = tuple(axes)
    if not named and len(device_ids) == 1:
        return device_ids[0]
    return Mesh(named, tuple(device_ids) or None)


def _mesh(read: _Reader, meshes: Mapping[str, Mesh | int]) -> Mesh | int:
    if read.next("mesh"):
        return _inlined_mesh(read)
    quoted = read.match(rf"@(?:{STRING}|.+)", "@ and the name of a mesh, or mesh<...>")[1:]
    name = mlir_unquoted(quoted[1:-1]) if quoted[0] in "\"'" else quoted
    if name not in meshes:
        known = ", ".join("@" + n for n in meshes) or "none"
        raise table.MESH.error(message=f"there is no mesh @{name}; known: {known}", hint="define sdy.mesh first")
    return meshes[name]


def _inlined_mesh(read: _Reader) -> Mesh | int:
    read.need("<")
    read.need("[")
    axes: list[tuple[str, int]] = []
    for _ in read.several("]"):
        name = read.name("an axis name in quotes")
        read.need("=")
        axes.append((name, int(read.match(r"\d+", "the size of the axis"))))
    ids: list[int] = []
    if read.next(","):
        read.need("device_ids")
        read.need("=")
        read.need("[")
        for _ in read.several("]"):
            ids.append(int(read.match(r"\d+", "the number of a device")))
    read.need(">")
    return mesh_or_device(axes, ids)


def _attributes(read: _Reader, mesh: Mesh) -> dict[str, Axes]:
    """Read the axes of ``replicated={..}`` and ``unreduced={..}``, each of which may be left out."""
    attributes: dict[str, Axes] = {"replicated": (), "unreduced": ()}
    while read.next(","):
        word = read.match("replicated|unreduced", "replicated or unreduced")
        read.need("=")
        read.need("{")
        attributes[word], _ = _axes(read, mesh)
    return attributes


def _axes(read: _Reader, mesh: Mesh) -> tuple[Axes, bool]:
    """Read the axes up to the closing brace, and whether a ``?`` follows them."""
    axes: list[AxisRef] = []
    is_open = False
    for _ in read.several("}"):
        if is_open:
            raise read.fault("'}' after '?'")
        if read.next("?"):
            is_open = True
            continue
        name = read.name("an axis name in quotes, or '?'")
        pre, size = 1, None
        if read.next(":"):
            read.need("(")
            pre = int(read.match(r"\d+", "an integer"))
            read.need(")")
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
