"""JAX's ``PartitionSpec``, as text and as a value, and a reader for all notations that users type.

``P('x', None)`` splits the first dimension over the mesh axis x; ``P(('x', 'y'))`` over both, x major; a dimension
without an entry is not split. ``P.UNCONSTRAINED`` leaves a dimension open. The axes are those of a mesh that stands
beside it: ``x=4,y=2``, or XLA's ``mesh['x'=4,'y'=2]``.

``parse_sharding`` is the public reader. The start of a text shows its notation:

1. ``P(`` or ``PartitionSpec(``: JAX's; ``jax.P(`` and ``jax.sharding.PartitionSpec(`` too.
2. ``#sdy.sharding<`` or ``<@``: Shardy's; the mesh that it names is the one given.
3. ``[``: a distributed type of the paper, ``[32{"x"}128, 64]``, whose sizes must be those of the array.
4. else ``mhlo.sharding`` text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics import table_sharding as table
from shardpass.diagnostics.arguments import wrong_argument
from shardpass.sharding.axes import Axes
from shardpass.sharding.errors import fault
from shardpass.sharding.mesh import AxisRef, Mesh
from shardpass.sharding.model import Sharding
from shardpass.sharding.notations.distributed_type import parse_distributed_type
from shardpass.sharding.notations.mhlo import parse_mhlo
from shardpass.sharding.notations.named_mesh import parse_mesh
from shardpass.sharding.notations.reader import Reader, tokens_of
from shardpass.sharding.notations.sdy import parse_sdy
from shardpass.sharding.quoting import STRING
from shardpass.sharding.tuples import TupleSharding

_CALL = re.compile(r"\s*(?:[A-Za-z_]\w*\.)*(?:P|PartitionSpec)\s*\(")
_TOKENS = tokens_of(rf"{STRING}|None|(?:[A-Za-z_]\w*\.)*(?:UNCONSTRAINED|PartitionSpec|P)")
_MESH = re.compile(r"\s*mesh\s*\[")
_AXIS = re.compile(rf"\s*({STRING}|[^\W\d][\w.-]*)\s*=\s*([0-9]{{1,18}})\s*")

Entry = tuple[str, ...] | None  # the axes of a dimension; None leaves it open


def spec_sharding(
    entries: Iterable[Entry], mesh: Mesh, rank: int | None = None, *, text: object = "", unreduced: Axes = ()
) -> Sharding:
    """Make the sharding that splits dimension k over the axes ``entries[k]``, of ``rank`` dimensions if given.

    Raises:
        ShardingError: an axis that the mesh has not, one used twice, or more entries than dimensions.
    """
    given = list(entries)
    if rank is not None:
        if len(given) > rank:
            raise table.RANK.error(sharding=str(text), dims=len(given), rank=rank)
        given += [()] * (rank - len(given))
    made = Sharding.tiled(mesh, [entry or () for entry in given], unreduced=unreduced)
    opened = tuple(k for k, entry in enumerate(given) if entry is None)
    return made.replaced(notes=replace(made.notes, open=opened)) if opened else made


def parse_partition_spec(text: str, mesh: Mesh, rank: int | None = None) -> Sharding:
    """Parse ``P('x', None)`` over ``mesh``. Raises ShardingParseError, or as ``spec_sharding``."""
    read = Reader(text, _TOKENS)
    read.match(r"(?:.*\.)?(?:P|PartitionSpec)", "'P'")
    read.take("(")
    entries = [_entry(read) for _ in read.several(")", trailing=True)]
    read.end()
    return spec_sharding(entries, mesh, rank, text=text)


def _entry(read: Reader) -> Entry:
    if read.next("None"):
        return ()
    if read.word.endswith("UNCONSTRAINED"):
        read.at += 1
        return None
    for opening, close in ("()", "[]"):
        if read.next(opening):
            return tuple(_name(read) for _ in read.several(close, trailing=True))
    return (_name(read),)


def _name(read: Reader) -> str:
    at, what = read.place, "an axis name in quotes, a tuple of them, None or UNCONSTRAINED"
    return _unquoted(read.match(STRING, what), read.text, at)


def _unquoted(token: str, text: str, at: int) -> str:
    """Unquote ``token``, which stands at ``at`` in ``text``."""
    try:
        return str(ast.literal_eval(token))
    except (SyntaxError, ValueError):
        raise fault(
            table.SYNTAX, text, at, len(token), expected="a name as Python quotes it", found=token, hint=""
        ) from None


def read_mesh(text: str) -> Mesh:
    """Parse a mesh ``x=4,y=2`` (``'a b'=4``), or XLA's text. Raises ShardingError."""
    if _MESH.match(text):
        return parse_mesh(text)
    axes, at = [], 0
    while True:
        match = _AXIS.match(text, at)
        if match is None:
            expected, shown = "an axis and its size, as in x=4,y=2", repr(text[at : at + 12])
            raise fault(table.SYNTAX, text, at, expected=expected, found=shown if text[at:] else "the end", hint="")
        name = match[1] if match[1][0] not in "'\"" else _unquoted(match[1], text, match.start(1))
        axes.append((name, int(match[2])))
        at = match.end()
        if at == len(text):
            return Mesh(axes)
        if text[at] != ",":
            raise fault(table.SYNTAX, text, at, expected="','", found=repr(text[at]), hint="")
        at += 1


class _Any(Mapping[str, Mesh]):
    """A mapping from every name to the same mesh."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh

    def __getitem__(self, name: str) -> Mesh:
        return self.mesh

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def parse_sharding(
    text: Any, mesh: Any = None, *, rank: int | None = None, strict: bool = True
) -> Sharding | TupleSharding:
    """Parse a sharding: text in any notation, or JAX's ``PartitionSpec`` or ``NamedSharding``.

    Args:
        text: ``mhlo.sharding`` text such as ``{devices=[4,2]<=[2,4]T(1,0)}``; a ``NamedSharding``; or, with ``mesh``,
            ``P('x', None)`` (a value or text) or Shardy's text.
        mesh: the mesh whose axes ``text`` names: JAX's, a ``Mesh``, or text such as ``x=4,y=2``.
        rank: the number of dimensions of the array, if a PartitionSpec has fewer entries.
        strict: reject ``mhlo.sharding`` text that XLA's parser accepts but drops, misreads or crashes on, and accept
            ``{devices=..} last_tile_dim_replicate`` as the format's documentation writes it. With False, accept exactly
            the text that XLA's parser accepts.

    Returns:
        A ``Sharding``; a ``TupleSharding`` for the text of a tuple.

    Raises:
        ArgumentError: SP140, for other values.
        ShardingParseError: with the place, an excerpt with a caret, the expected text, and a likely remedy.
        ShardingError: if the mesh does not have an axis, an axis is used twice, the mesh is missing, or ``rank`` is too
            low.
    """
    if isinstance(text, str):
        return _of_text(text, mesh if mesh is None else _mesh_of(mesh), rank, strict)
    try:
        if is_named_sharding(text):
            return from_named_sharding(text, rank)
        if type(text).__name__ in ("P", "PartitionSpec"):
            over = _given(mesh if mesh is None else _mesh_of(mesh), "JAX's PartitionSpec")
            return from_partition_spec(text, over, rank)
    except ShardpassError:
        raise
    except Exception:  # an object that only looks like one
        pass
    return parse_mhlo(text, strict=strict)  # which refuses it


def read_any(text: str, shape: Sequence[int], mesh: Mesh | None = None) -> Sharding | TupleSharding:
    """Parse the sharding of an array of ``shape``: a text in any notation, or a distributed type.

    Raises:
        ShardingError: the text follows none of them, needs a mesh that is not given, or is of another rank or shape.
    """
    if not text.lstrip().startswith("["):
        return _of_text(text, mesh, len(shape))
    sharding, whole = parse_distributed_type(text, _given(mesh, "a distributed type"))
    if whole != tuple(shape):
        what = f"a type of {'x'.join(map(str, whole))} for an array of {'x'.join(map(str, shape))}"
        raise table.CANNOT_SAY.error(notation="a distributed type", what=what)
    return sharding


def _of_text(text: str, mesh: Mesh | None, rank: int | None, strict: bool = True) -> Sharding | TupleSharding:
    if _CALL.match(text):
        return parse_partition_spec(text, _given(mesh, "JAX's PartitionSpec"), rank)
    if (start := text.lstrip()).startswith(("#sdy.sharding", "<@", "<mesh<")):
        return parse_sdy(text, {} if "<mesh<" in start else _Any(_given(mesh, "Shardy's sharding")))
    return parse_mhlo(text, strict=strict)


def _mesh_of(given: Any) -> Mesh:
    """Return the mesh for a shardpass mesh, text, or a JAX mesh. Raises ShardpassError (SP140) for other values."""
    if isinstance(given, str | Mesh):
        return read_mesh(given) if isinstance(given, str) else given
    try:
        return Mesh((str(name), int(size)) for name, size in dict(given.shape).items())
    except ShardpassError:
        raise
    except Exception:  # of the object's own
        raise wrong_argument("parse_sharding", "mesh", given, "JAX's mesh, a Mesh, or text such as x=4,y=2") from None


def _given(mesh: Mesh | None, notation: str) -> Mesh:
    if mesh is None:
        raise table.MESH.error(
            message=f"{notation} names axes of a mesh", hint="give the mesh: --mesh x=4,y=2, or mesh= in Python"
        )
    return mesh


def is_named_sharding(value: Any) -> bool:
    """Return whether ``value`` looks as a ``jax.sharding.NamedSharding`` does: JAX is not imported to ask."""
    return hasattr(value, "spec") and hasattr(value, "mesh") and hasattr(value.mesh, "shape")


def from_named_sharding(value: Any, rank: int | None = None) -> Sharding:
    """Convert a ``NamedSharding``.

    Devices are numbered by their place in its mesh, which is how JAX numbers the partitions of a program.
    """
    return from_partition_spec(value.spec, _mesh_of(value.mesh), rank)


def from_partition_spec(spec: Any, mesh: Mesh, rank: int | None = None) -> Sharding:
    """Convert a ``PartitionSpec`` over ``mesh``, partial sums included. Raises as ``spec_sharding``."""
    entries: list[Entry] = []
    for entry in tuple(getattr(spec, "partitions", spec)):
        if entry is None or isinstance(entry, tuple | list):
            entries.append(tuple(entry or ()))
        else:
            entries.append((entry,) if isinstance(entry, str) else None)  # UNCONSTRAINED is an object of JAX's
    summed = getattr(spec, "unreduced", ())
    unreduced = tuple(AxisRef(name) for name in mesh.names if name in summed)
    return spec_sharding(entries, mesh, rank, text=spec, unreduced=unreduced)
