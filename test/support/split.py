"""As ``differential.check_jax``, for sizes that do not divide, which JAX refuses on arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec
from jaxlib.mlir import ir

from shardpass.ir.context import parse_module
from shardpass.sharding import AxisRef, Mesh, Sharding
from support.differential import Outcome, check_text

AXES = ("x", "y", "z")


def sharding_text(spec: PartitionSpec, rank: int, mesh: Sequence[int]) -> str:
    """``spec`` over the axes x, y, z of sizes ``mesh``, as mhlo.sharding text."""
    entries = (*spec, *([None] * (rank - len(spec))))
    dims = [() if e is None else (e,) if isinstance(e, str) else tuple(e) for e in entries]
    grid = Mesh(tuple(zip(AXES, mesh, strict=False)), None)
    return str(Sharding.tiled(grid, tuple(tuple(AxisRef(name) for name in dim) for dim in dims)))


def check_split(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    specs: Sequence[PartitionSpec],
    mesh: Sequence[int] = (4, 2),
    out_specs: Sequence[PartitionSpec | None] | None = None,
    **options: Any,
) -> Outcome:
    """Partitions ``function`` with ``specs`` written on its arguments (and results), and compares with one device."""
    shapes = [jax.ShapeDtypeStruct(np.shape(a), np.asarray(a).dtype) for a in arguments]
    module = parse_module(jax.jit(function, keep_unused=True).lower(*shapes).as_text())
    with module.context:
        module.operation.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(32), int(np.prod(mesh))
        )
        main = next(op for op in module.body.operations if str(op.attributes["sym_name"]) == '"main"')
        kind = ir.TypeAttr(main.attributes["function_type"]).value
        _annotate(main, "arg_attrs", kind.inputs, specs, mesh)
        if out_specs is not None:
            _annotate(main, "res_attrs", kind.results, out_specs, mesh)
    # what one op does under the split that propagation gives it: nothing is searched
    return check_text(str(module), arguments, **{"pipeline": "partition{effort=0}", **options})


def _annotate(
    main: Any, name: str, kinds: Sequence[Any], specs: Sequence[PartitionSpec | None], mesh: Sequence[int]
) -> None:
    rows = []
    for kind, spec in zip(kinds, specs, strict=True):
        found = (
            {}
            if spec is None
            else {"mhlo.sharding": ir.StringAttr.get(sharding_text(spec, len(ir.RankedTensorType(kind).shape), mesh))}
        )
        rows.append(ir.DictAttr.get(found))
    main.attributes[name] = ir.ArrayAttr.get(rows)
