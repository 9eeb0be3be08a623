"""Specs that a type may have on a mesh with Explicit axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from shardpass.advise.find.propose.specs import every_spec
from shardpass.advise.place.specs import Spec

MOST = 32  # specs of one array


def explicit_axes(mesh: Any) -> dict[str, int]:
    """Return the axes of a mesh that types may name and that split anything, with their sizes."""
    return {name: mesh.shape[name] for name in mesh.explicit_axes if mesh.shape[name] > 1}


def spec_of(array: Any) -> Spec:
    """Return the spec of an array, a tracer or a ``ShapeDtypeStruct``, one entry for each dimension."""
    return _entries(jax.typeof(array).sharding.spec)


def type_text(value: Any) -> str:
    """Return the type as JAX writes it, ``float32[8@data,16]``; "" for a value that is not an array."""
    if getattr(value, "sharding", None) is None or not hasattr(value, "shape"):
        return ""
    text: str = jax.typeof(value).str_short()
    return text


def spec_of_type(aval: Any) -> Spec | None:
    """Return the spec of a type; None if it has none, or if it is of partial sums."""
    spec = getattr(getattr(aval, "sharding", None), "spec", None)
    if spec is None or getattr(spec, "unreduced", None) or getattr(spec, "reduced", None):
        return None
    return _entries(spec)


def _entries(spec: Any) -> Spec:
    return tuple(() if one is None else (one,) if isinstance(one, str) else tuple(one) for one in spec)


def specs(shape: Sequence[int], axes: Mapping[str, int], like: Sequence[Spec] = ()) -> list[Spec]:
    """Return the specs of an array of ``shape``: each axis on a dimension that it divides, or on none.

    Returns at most MOST; those come first that agree with one of ``like`` on most axes.
    """

    def alike(spec: Spec, other: Spec) -> int:
        return sum(len(set(one) & set(two)) for one, two in zip(spec, other, strict=False))

    return sorted(every_spec(shape, axes), key=lambda one: -max((alike(one, other) for other in like), default=0))[
        :MOST
    ]
