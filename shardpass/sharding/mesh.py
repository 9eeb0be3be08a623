"""Meshes and their axes.

A mesh arranges the devices 0..n-1 in a grid with named axes. A sub-axis is a factor of an axis: `"x":(pre)size`
in SDY's notation, where pre is the product of the parts of x that are more major than it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.digits import Digit, Ints, digits_of, iota_text


@dataclass(frozen=True, slots=True)
class AxisRef:
    """A mesh axis (``size`` None), or the sub-axis ``name:(pre)size`` of it."""

    name: str
    pre: int = 1
    size: int | None = None

    def __str__(self) -> str:
        name = quote(self.name)
        return name if self.size is None else f"{name}:({self.pre}){self.size}"


def quote(name: str) -> str:
    """``name`` between quotes, as XLA prints it: without escapes, so a name with quotes cannot be read again."""
    return f"'{name}'"


class Mesh:
    """Named axes with sizes, and the devices in row-major mesh order. Immutable and hashable.

    Args:
        axes: (name, size) of each axis, major to minor.
        device_ids: a permutation of 0..size-1; None, or that order itself, is the plain mesh.

    Raises:
        ShardingError: a name twice, a size less than 1, device ids that are no permutation.
    """

    axes: tuple[tuple[str, int], ...]
    size: int

    def __init__(self, axes: Iterable[tuple[str, int]], device_ids: Sequence[int] | Ints | None = None) -> None:
        self.axes = tuple((str(name), int(size)) for name, size in axes)
        self.size = math.prod(size for _, size in self.axes)
        self._check_axes()
        self._ids = None if device_ids is None else _checked_ids(device_ids, self.size)
        self._hash = hash((self.axes, None if self._ids is None else self._ids.tobytes()))

    def _check_axes(self) -> None:
        names = [name for name, _ in self.axes]
        for name, size in self.axes:
            if size < 1:
                raise table.MESH.error(
                    message=f"axis {name!r} has the size {size}", hint="give each axis a size of at least 1"
                )
            if names.count(name) > 1:
                raise table.MESH.error(message=f"two axes are called {name!r}", hint="give each axis its own name")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(size for _, size in self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.axes)

    @cached_property
    def sizes(self) -> dict[str, int]:
        return dict(self.axes)

    @property
    def is_iota(self) -> bool:
        """Whether the devices stand in order, 0..n-1."""
        return self._ids is None

    @cached_property
    def device_ids(self) -> tuple[int, ...] | None:
        """The devices in row-major mesh order; None for 0..n-1."""
        return None if self._ids is None else tuple(self._ids.tolist())

    @cached_property
    def order(self) -> Ints:
        """The devices in row-major mesh order, int64 [size]."""
        return np.arange(self.size, dtype=np.int64) if self._ids is None else self._ids

    @cached_property
    def devices(self) -> Ints:
        """The devices as a grid, int64, of the mesh's shape."""
        grid = self.order.reshape(self.shape)
        grid.flags.writeable = False
        return grid

    @cached_property
    def position(self) -> Ints:
        """The inverse of ``order``: the position of each device in the mesh, int64 [size]."""
        if self._ids is None:
            return self.order
        out = np.empty(self.size, dtype=np.int64)
        out[self._ids] = np.arange(self.size)
        return out

    @cached_property
    def strides(self) -> dict[str, int]:
        """The stride of each axis in row-major mesh order."""
        out, stride = {}, self.size
        for name, size in self.axes:
            stride //= size
            out[name] = stride
        return out

    @cached_property
    def device_digits(self) -> tuple[Digit, ...] | None:
        """``order`` as an iota: the digits, major to minor, of which the device ids are the values; or None.

        The positions of the mesh, row-major, count through these digits of the device number.
        """
        if self._ids is None:
            return ((1, self.size),)
        of_position = digits_of(self.position, self.size)
        return of_position

    def ref(self, axis: AxisRef | str) -> AxisRef:
        """``axis`` in normal form: a sub-axis that is the whole axis has no size.

        Raises:
            ShardingError: the mesh has no such axis, or the sub-axis is none of it.
        """
        return _ref(self, axis)

    def ref_size(self, axis: AxisRef) -> int:
        return self.sizes[axis.name] if axis.size is None else axis.size

    def digit(self, axis: AxisRef) -> Digit:
        """The digit of the mesh position that ``axis`` (in normal form) is."""
        stride = self.strides[axis.name]
        if axis.size is None:
            return stride, self.sizes[axis.name]
        return stride * (self.sizes[axis.name] // (axis.pre * axis.size)), axis.size

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Mesh) or self._hash != other._hash or self.axes != other.axes:
            return False
        if self._ids is None or other._ids is None:
            return self._ids is other._ids
        return np.array_equal(self._ids, other._ids)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Mesh], tuple[object, ...]]:
        return Mesh, (self.axes, self.device_ids)

    @cached_property
    def _text(self) -> str:
        axes = ",".join(f"{quote(name)}={size}" for name, size in self.axes)
        if self._ids is None:
            return f"mesh[{axes}]"
        digits = self.device_digits
        if digits is None:
            return f"mesh[{axes}], device_ids=({','.join(map(str, self._ids.tolist()))})"
        return f"mesh[{axes}], device_ids=({iota_text(digits)})"

    def __str__(self) -> str:
        """XLA's V3 text."""
        return self._text

    def __repr__(self) -> str:
        return f"Mesh({self})"

    @staticmethod
    def parse(text: str) -> Mesh:
        """The mesh of XLA's V3 text, ``mesh['x'=4,'y'=2], device_ids=([2,4]T(1,0))``.

        Raises:
            ShardingParseError: ``text`` is no such mesh.
        """
        from shardpass.sharding.parser import parse_mesh

        return parse_mesh(text)


def _checked_ids(device_ids: Sequence[int] | Ints, size: int) -> Ints | None:
    ids = np.array(device_ids, dtype=np.int64).reshape(-1)
    if len(ids) != size:
        raise table.MESH.error(
            message=f"the axes make {size} places but {len(ids)} devices are listed",
            hint="list one device for each place of the mesh",
        )
    plain = np.arange(size)
    if np.array_equal(ids, plain):
        return None
    seen = np.zeros(size, dtype=bool)
    seen[ids[(ids >= 0) & (ids < size)]] = True
    if not seen.all():
        raise table.MESH.error(
            message=f"the device ids are not a permutation of 0 to {size - 1}", hint="list each device once"
        )
    ids.flags.writeable = False
    return ids


@lru_cache(maxsize=65536)
def _ref(mesh: Mesh, axis: AxisRef | str) -> AxisRef:
    if isinstance(axis, str):
        axis = AxisRef(axis)
    full = mesh.sizes.get(axis.name)
    if full is None:
        raise table.UNKNOWN_AXIS.error(
            axis=repr(axis.name),
            axes=", ".join(map(repr, mesh.names)) or "none",
            hint=_nearest(axis.name, mesh),
        )
    if axis.size is None:
        return AxisRef(axis.name)
    if axis.pre < 1 or axis.size < 1 or full % (axis.pre * axis.size):
        raise table.SUB_AXIS.error(
            axis=str(axis),
            message=f"{axis.pre} * {axis.size} does not divide {full}, the size of {axis.name!r}",
        )
    return AxisRef(axis.name) if axis.size == full else axis


def _nearest(name: str, mesh: Mesh) -> str:
    import difflib

    close = difflib.get_close_matches(name, mesh.names, 1)
    return f"did you mean {close[0]!r}?" if close else "name an axis of the mesh"


_SUB_AXIS = re.compile(r"(?P<name>.*):\((?P<pre>\d+)\)(?P<size>\d+)", re.DOTALL)


def joined(mesh: Mesh, axes: Iterable[AxisRef]) -> tuple[AxisRef, ...]:
    """``axes``, major to minor, with neighbouring parts of one axis made one and those of size 1 left out."""
    out: list[AxisRef] = []
    for axis in axes:
        if mesh.ref_size(axis) == 1:
            continue
        last = out[-1] if out else None
        if (
            last is not None
            and last.name == axis.name
            and last.size is not None
            and axis.size is not None
            and axis.pre == last.pre * last.size
        ):
            out[-1] = mesh.ref(AxisRef(axis.name, last.pre, last.size * axis.size))
            continue
        out.append(axis)
    return tuple(out)


def part_name(name: str, pre: int, size: int, of: int) -> str:
    """The name of the part (pre, size) of an axis ``name`` of size ``of``: ``x:(1)2``, or ``x`` for all of it."""
    if size == of:
        return name
    match = _SUB_AXIS.fullmatch(name)
    if match and int(match["size"]) == of:
        name, pre = match["name"], pre * int(match["pre"])
    return f"{name}:({pre}){size}"


def named(digits: Iterable[Digit]) -> tuple[tuple[str, int], ...]:
    """Axes axis_0, axis_1.. for digits (major to minor)."""
    return tuple((f"axis_{k}", size) for k, (_, size) in enumerate(digits))


def refs(mesh: Mesh, digits: Iterable[Digit]) -> tuple[AxisRef, ...] | None:
    """``digits`` of the mesh position said with axes and sub-axes of ``mesh``; None where they cut across axes."""
    out: list[AxisRef] = []
    for stride, size in digits:
        top = stride * size
        while top > stride:
            name = _covering(mesh, top)
            if name is None:
                return None
            low, full = mesh.strides[name], mesh.sizes[name]
            cut = max(stride, low)
            if (low * full) % top or top % cut or cut % low:
                return None
            out.append(mesh.ref(AxisRef(name, low * full // top, top // cut)))
            top = cut
    return joined(mesh, out)


def _covering(mesh: Mesh, top: int) -> str | None:
    for name, size in mesh.axes:
        low = mesh.strides[name]
        if low < top <= low * size:
            return name
    return None
