"""Meshes and references to their axes.

A mesh arranges the devices 0..n-1 in a grid with named axes. A sub-axis is a factor of an axis, written
``"x":(pre)size`` as in SDY's AxisRefAttr: ``pre`` is the product of the factors of x that are more major. On an axis
x of 8, ``"x":(2)2`` is the middle one of three factors 2: of the coordinate c along x it is ``c // 2 % 2``.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.digits import Digit, Ints, digits_of
from shardpass.sharding.quoting import bare, c_quoted
from shardpass.sharding.xla_text import iota_text, list_text, mesh_text


@dataclass(frozen=True, slots=True)
class AxisRef:
    """A mesh axis (``size`` None), or its sub-axis ``name:(pre)size``."""

    name: str
    pre: int = 1
    size: int | None = None

    def __str__(self) -> str:
        return c_quoted(self.name) + self.part

    @property
    def bare(self) -> str:
        """Format the axis for readers: ``x``, ``x:(1)2``; in quotes if the name is unclear without them."""
        return bare(self.name) + self.part

    @property
    def part(self) -> str:
        """``:(1)2`` of a sub-axis, "" of a whole axis."""
        return "" if self.size is None else f":({self.pre}){self.size}"


class Mesh:
    """Named axes with sizes, and the devices in row-major mesh order. Immutable and hashable.

    Args:
        axes: (name, size) of each axis, major to minor.
        device_ids: a permutation of 0..size-1; by default the devices in ascending order.

    Raises:
        ShardingError: if a name occurs twice, a size is less than 1, or the device ids are not a permutation.
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

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(size for _, size in self.axes)

    @cached_property
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
        """Return ``order`` as an iota: digits, major to minor, whose values are the device ids; or None.

        The positions of the mesh, row-major, count through these digits of the device number.
        """
        if self._ids is None:
            return ((1, self.size),)
        return digits_of(self.position, self.size)

    def ref(self, axis: AxisRef | str) -> AxisRef:
        """Return ``axis`` in normal form: a sub-axis that covers the whole axis has no size.

        Raises:
            ShardingError: if the mesh has no such axis, or the sub-axis does not fit the axis.
        """
        return _ref(self, axis)

    def ref_size(self, axis: AxisRef) -> int:
        return self.sizes[axis.name] if axis.size is None else axis.size

    def digit(self, axis: AxisRef) -> Digit:
        """Return the digit of the mesh position that ``axis`` (in normal form) is."""
        stride = self.strides[axis.name]
        if axis.size is None:
            return stride, self.sizes[axis.name]
        return stride * (self.sizes[axis.name] // (axis.pre * axis.size)), axis.size

    def same_order(self, other: Mesh) -> bool:
        """Return whether both meshes have the same devices in the same order, regardless of axes."""
        if self._ids is None or other._ids is None:
            return self._ids is other._ids and self.size == other.size
        return np.array_equal(self._ids, other._ids)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Mesh) or self._hash != other._hash or self.axes != other.axes:
            return False
        return self.same_order(other)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Mesh], tuple[object, ...]]:
        return Mesh, (self.axes, self.device_ids)

    @cached_property
    def _text(self) -> str:
        if self._ids is None:
            return mesh_text(self.axes)
        digits = self.device_digits
        return mesh_text(self.axes, list_text(self._ids) if digits is None else iota_text(digits))

    def __str__(self) -> str:
        """Format the mesh as XLA V3 text, which ``parse_mesh`` reads."""
        return self._text

    def __repr__(self) -> str:
        return f"Mesh({self})"


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
    close = difflib.get_close_matches(name, mesh.names, 1)
    return f"did you mean {close[0]!r}?" if close else "name an axis of the mesh"
