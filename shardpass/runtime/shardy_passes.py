"""Builds the per-device program of Shardy's own passes for an annotated program, in a form that XLA runs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Any

# Each pass is a tuple of its spellings: jaxlib 0.12's, then 0.10's. LOCAL lists the devices of each group.
PAD = ("sdy-pad-for-divisibility", "func.func(sdy-pad-for-divisibility)")
LOCAL = ("sdy-convert-global-to-local{enable-rgv3=false}", "sdy-convert-global-to-local")
DROP = ("sdy-drop-sharding-and-mesh",)
SHARDY = (
    ("sdy-propagation-pipeline",),
    ("func.func(sdy-insert-explicit-reshards{enable-full-version=true})",),
    ("canonicalize{enable-patterns=sdy-reshard}",),
    ("sdy-resolve-permutation-factors{enable-halo-exchange=true}",),
    ("func.func(sdy-reshard-to-collectives)",),
    PAD,
    LOCAL,
    DROP,
)

_MESH = re.compile(r"sdy\.mesh @(\w+) = <\[([^\]]*)\]")

_AXIS = re.compile(r'"?([\w.]+)"=(\d+)')


def shardy_module(text: str) -> Any:
    """Build the per-device module of Shardy's own passes, under the contract of shardpass's partitioned modules.

    It gets every help: calls are inlined first (it converts none), chlo.square is written as a product (its passes
    refuse CHLO, and jaxlib registers no pass that would lower it), and indices of gather and scatter are of 64 bits
    (with those of 32, which JAX has, it reads beyond them and ends the process).
    """
    from jaxlib.mlir import ir

    from shardpass.importing.inline_calls import inline_calls
    from shardpass.ir.context import parse_module

    module = parse_module(
        re.sub(r"chlo\.square (%[\w#]+) : (tensor<\S+>) -> \S+", r"stablehlo.multiply \1, \1 : \2", text)
    )
    with module.context, ir.Location.unknown():
        inline_calls(module)
        _widen_indices(module)
        meshes = _meshes(module)
        types = _main(module).attributes["function_type"].value
        whole = [*types.inputs, *types.results]
        shardings: list[str] = []
        for spellings in SHARDY:
            if spellings == LOCAL:
                shardings = _boundary_shardings(module, meshes)
            passes(spellings).run(module.operation)
        _annotate(module, whole, shardings, len(types.inputs))
    return module


def passes(spellings: Sequence[str]) -> Any:
    """Return the pass manager of the first spelling that this jaxlib knows."""
    from jaxlib.mlir.passmanager import PassManager

    for spelling in spellings[:-1]:
        with contextlib.suppress(ValueError):
            return PassManager.parse(f"builtin.module({spelling})")
    return PassManager.parse(f"builtin.module({spellings[-1]})")


def _widen_indices(module: Any) -> None:
    from jaxlib.mlir import ir

    from shardpass.ir.tensors import every_op

    wide = ir.IntegerType.get_signless(64)
    for op in [op for op in every_op(module.operation) if op.name in ("stablehlo.gather", "stablehlo.scatter")]:
        place = len(op.results)  # operands, one for each result, come before the indices
        indices = op.operands[place]
        kind = ir.RankedTensorType(indices.type)
        with ir.InsertionPoint(op), op.location:
            converted = ir.RankedTensorType.get(kind.shape, wide)
            op.operands[place] = ir.Operation.create("stablehlo.convert", [converted], [indices]).result


def _meshes(module: Any) -> dict[str, Any]:
    """Return the meshes; for Shardy's mesh without axes, of replicated values, any other serves."""
    from shardpass.sharding import Mesh

    meshes = {name: _AXIS.findall(axes) for name, axes in _MESH.findall(str(module.operation))}
    largest = max(meshes.values(), key=len, default=[])
    return {name: Mesh(tuple((a, int(n)) for a, n in axes or largest)) for name, axes in meshes.items()}


def _main(module: Any) -> Any:
    return next(op for op in module.body.operations if op.operation.name == "func.func")


def _boundary_shardings(module: Any, meshes: dict[str, Any]) -> list[str]:
    """Return mhlo text of the sharding of each argument and result of main."""
    from shardpass.sharding import Sharding
    from shardpass.sharding.notations.sdy import parse_sdy

    main = _main(module)
    kind = main.attributes["function_type"].value
    shardings = []
    for name, types in (("arg_attrs", kind.inputs), ("res_attrs", kind.results)):
        rows = main.attributes[name] if name in main.attributes else [None] * len(types)
        for row in rows:
            attribute = row["sdy.sharding"] if row is not None and "sdy.sharding" in row else None
            shardings.append(str(Sharding.replicated() if attribute is None else parse_sdy(str(attribute), meshes)))
    return shardings


def _annotate(module: Any, whole: list[Any], shardings: list[str], arguments: int) -> None:
    from jaxlib.mlir import ir

    rows = [
        ir.DictAttr.get(
            {
                "mhlo.sharding": ir.StringAttr.get("{manual}"),
                "shardpass.sharding": ir.StringAttr.get(sharding),
                "shardpass.global_type": ir.TypeAttr.get(kind),
            }
        )
        for kind, sharding in zip(whole, shardings, strict=True)
    ]
    main = _main(module)
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(rows[:arguments])
    main.attributes["res_attrs"] = ir.ArrayAttr.get(rows[arguments:])
