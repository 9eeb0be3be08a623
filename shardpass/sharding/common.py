"""The coarsest mesh on which many shardings are said with whole axes.

Every sharding cuts the devices, in some order, at strides. In one device order the strides of all shardings
form a chain in which each divides the next, or there is no common mesh: `[6]` cut at 2 and at 3 has none. The
axes of the common mesh are the steps of that chain. The order is 0..n-1 if all can be said over it, else that of
the first mesh over which all can.

Cost: O(shardings x axes) on plain meshes, O(shardings x n log n) with a device order of one's own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from shardpass.sharding import digits as dg
from shardpass.sharding.digits import Digit
from shardpass.sharding.meaning import digits_on
from shardpass.sharding.mesh import Mesh, part_name
from shardpass.sharding.model import Sharding
from shardpass.sharding.notes import Kind


def common_mesh(shardings: Iterable[Sharding], prefer: Mesh | None = None) -> Mesh | None:
    """The coarsest mesh on which each of ``shardings`` is said with whole axes.

    Shardings that name no devices have no say. The axes of ``prefer`` (else of the first mesh whose names a user
    gave) are kept, cut into sub-axes ``x:(pre)size`` where need be; other axes are called axis_0, axis_1...

    Returns None where there is no such mesh: another number of devices, device orders or cuts that do not nest,
    or no sharding that names devices and no ``prefer``.
    """
    unique = list({id(s): s for s in shardings if s.kind is Kind.TILED and s.mesh is not None}.values())
    meshes = list(dict.fromkeys(s.mesh for s in unique if s.mesh is not None))
    if prefer is None:
        prefer = next((mesh for mesh in meshes if _is_named(mesh)), None)
    sizes = {mesh.size for mesh in (*meshes, *([prefer] if prefer else ()))}
    if len(sizes) != 1:
        return None
    (n,) = sizes
    for order in _orders(n, prefer, meshes):
        cuts = _cuts(unique, order)
        if cuts is None:
            continue
        if prefer is not None and _same_order(prefer, order):
            kept = _chain(cuts | {prefer.strides[name] for name in prefer.names}, n)
            if kept is not None:
                return _mesh(kept, prefer, order)
        chain = _chain(cuts, n)
        if chain is not None:
            return _mesh(chain, prefer if prefer is not None and _same_order(prefer, order) else None, order)
    return None


def _is_named(mesh: Mesh) -> bool:
    return any(name != f"axis_{k}" for k, name in enumerate(mesh.names))


def _orders(n: int, prefer: Mesh | None, meshes: Sequence[Mesh]) -> list[Mesh]:
    """Device orders to try, each as a mesh: the preferred, the plain, then those of the shardings."""
    plain = Mesh((("axis_0", n),))
    first = [] if prefer is None else [prefer]
    out: list[Mesh] = []
    for mesh in (*first, plain, *(m for m in meshes if not m.is_iota)):
        if not any(_same_order(mesh, other) for other in out):
            out.append(mesh)
    return out


def _same_order(a: Mesh, b: Mesh) -> bool:
    return a is b or (a.order == b.order).all() if a.size == b.size else False


def _cuts(shardings: Iterable[Sharding], order: Mesh) -> set[int] | None:
    cuts: set[int] = set()
    for sharding in shardings:
        for axes in (*sharding.dims, sharding.unreduced, sharding.manual, sharding.maximal_axes):
            found: tuple[Digit, ...] | None = digits_on(sharding, axes, order)
            if found is None:
                return None
            for stride, size in found:
                cuts |= {stride, stride * size}
    return cuts


def _chain(cuts: set[int], n: int) -> list[Digit] | None:
    """The digits, major to minor, between neighbouring cuts; None where one does not divide the next."""
    points = sorted(cuts | {1, n})
    digits: list[Digit] = []
    for low, high in itertools.pairwise(points):
        if high % low:
            return None
        digits.append((low, high // low))
    return digits[::-1]


def _mesh(digits: Sequence[Digit], names: Mesh | None, order: Mesh) -> Mesh:
    taken = set(names.names) if names is not None else set()
    axes: list[tuple[str, int]] = []
    fresh = (name for k in range(len(digits) + len(taken) + 1) if (name := f"axis_{k}") not in taken)
    for digit in digits:
        known = None if names is None else _name_in(names, digit)
        axes.append((known or next(fresh), digit[1]))
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


__all__ = ["common_mesh", "dg"]
