"""Find the coarsest mesh whose whole axes express many shardings.

Problem: the shardings of a program are written over different meshes; the program needs one mesh. Whole axes of a mesh
express a sharding if each of the sharding's axes is a run of axes there.

State: in one device order, each sharding cuts the devices at strides (the ends of its digits, see ``digits``).

Cases:

1. The strides of all shardings form a chain in which each divides the next: the axes of the common mesh are the steps
   of the chain. ``{devices=[4,2]<=[8]}`` cuts 8 devices at 2, ``{devices=[2,4]<=[8]}`` at 4: the chain 1, 2, 4, 8 is
   the mesh of three axes of 2.
2. They form none: there is no common mesh in this order. 6 devices cut at 2 and at 3 have none.
3. A sharding has no strides in this order (its devices stand in an order of its own): the next order is tried. The
   orders are that of the preferred mesh, then 0..n-1, then those of the shardings' meshes.

Cost: O(shardings x axes) on plain meshes, O(shardings x n log n) with any other device order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import lru_cache

from shardpass.sharding.axes import Axes, part_name
from shardpass.sharding.coordinates import digits_on
from shardpass.sharding.digits import Digit
from shardpass.sharding.mesh import Mesh
from shardpass.sharding.model import Sharding
from shardpass.sharding.notes import Kind


def common_mesh(shardings: Iterable[Sharding], prefer: Mesh | None = None) -> Mesh | None:
    """Find the coarsest mesh whose whole axes express each of ``shardings``.

    Shardings that name no devices are ignored. The axes of ``prefer`` (else of the first mesh whose names a user
    gave) are kept, cut into sub-axes ``x:(pre)size`` where need be; other axes are called axis_0, axis_1...

    Returns None where there is no such mesh: another number of devices, device orders or cuts that do not nest,
    or no sharding that names devices and no ``prefer``.
    """
    tiled = {id(s): s for s in shardings if s.kind is Kind.TILED}.values()
    written = dict.fromkeys(
        (s.mesh, (*s.dims, s.unreduced, s.manual, s.maximal_axes)) for s in tiled if s.mesh is not None
    )
    return _common_mesh(tuple(written), prefer)


def unreduced_over_all(sharding: Sharding, rank: int, devices: int) -> Sharding:
    """Convert ``{unreduced}``, which has no mesh, to a partial sum over one axis of all ``devices``; keep other
    shardings.
    """
    if not sharding.is_unreduced or sharding.mesh is not None:
        return sharding
    mesh = Mesh((("axis_0", devices),))
    return Sharding.tiled(mesh, ((),) * rank, unreduced=("axis_0",), reduction=sharding.reduction)


_AxesOnMesh = tuple[Mesh, tuple[Axes, ...]]  # the lists of axes of one sharding, and the mesh of which they are


@lru_cache(maxsize=4096)
def _common_mesh(written: tuple[_AxesOnMesh, ...], prefer: Mesh | None) -> Mesh | None:
    meshes = list(dict.fromkeys(mesh for mesh, _ in written))
    if prefer is None:
        prefer = next((mesh for mesh in meshes if is_named(mesh)), None)
    sizes = {mesh.size for mesh in (*meshes, *([prefer] if prefer else ()))}
    if len(sizes) != 1:
        return None
    (n,) = sizes
    for order in _orders(n, prefer, meshes):
        cuts = _cuts(written, order)
        if cuts is None:
            continue
        if prefer is not None and prefer.same_order(order):
            kept = _chain(cuts | {prefer.strides[name] for name in prefer.names}, n)
            if kept is not None:
                return _mesh(kept, prefer, order)
        chain = _chain(cuts, n)
        if chain is not None:
            return _mesh(chain, prefer if prefer is not None and prefer.same_order(order) else None, order)
    return None


def is_named(mesh: Mesh) -> bool:
    """Return whether the axis names come from a user: device lists have ``axis_0``, ``axis_1``."""
    return any(name != f"axis_{k}" for k, name in enumerate(mesh.names))


def _orders(n: int, prefer: Mesh | None, meshes: Sequence[Mesh]) -> list[Mesh]:
    """List the device orders to try, each as a mesh: the preferred, the plain, then the shardings' own."""
    plain = Mesh((("axis_0", n),))
    first = [] if prefer is None else [prefer]
    out: list[Mesh] = []
    for mesh in (*first, plain, *(m for m in meshes if not m.is_iota)):
        if not any(mesh.same_order(other) for other in out):
            out.append(mesh)
    return out


def _cuts(written: Iterable[_AxesOnMesh], order: Mesh) -> set[int] | None:
    """Return the strides at which the axes cut the positions of ``order``; None if some axes do not cut there."""
    cuts: set[int] = set()
    for mesh, lists in written:
        for axes in lists:
            digits = digits_on(mesh, axes, order) if axes else ()
            if digits is None:
                return None
            for stride, size in digits:
                cuts |= {stride, stride * size}
    return cuts


def _chain(cuts: set[int], n: int) -> list[Digit] | None:
    """Return the digits between neighbouring cuts, major to minor; None if a cut does not divide the next."""
    points = sorted(cuts | {1, n})
    digits: list[Digit] = []
    for low, high in itertools.pairwise(points):
        if high % low:
            return None
        digits.append((low, high // low))
    return digits[::-1]


def _mesh(digits: Sequence[Digit], names: Mesh | None, order: Mesh) -> Mesh:
    used = set(names.names) if names is not None else set()
    axes: list[tuple[str, int]] = []
    fresh = (name for k in range(len(digits) + len(used) + 1) if (name := f"axis_{k}") not in used)
    for digit in digits:
        known = None if names is None else _name_in(names, digit)
        axes.append((next(fresh) if known is None else known, digit[1]))
    return Mesh(axes, order.device_ids)


def _name_in(names: Mesh, digit: Digit) -> str | None:
    stride, size = digit
    for name, full in names.axes:
        low = names.strides[name]
        if low <= stride and stride * size <= low * full and full > 1:
            pre = low * full // (stride * size)
            if low * full % (stride * size) == 0 and stride % low == 0:
                return part_name(name, pre, size, full)
    return None
