"""Build the per-device program of Shardy's own passes for an annotated program, in a form that XLA runs."""

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


def shardy_module(text: str) -> Any:
    """Build the per-device module of Shardy's own passes, under the contract of shardpass's partitioned modules.

    It gets every help: calls are inlined first (it converts none), chlo.square is written as a product (its passes
    refuse CHLO, and jaxlib registers no pass that would lower it), and indices of gather and scatter are of 64 bits
    (with those of 32, which JAX has, it reads beyond them and ends the process).
    """
    from jaxlib.mlir import ir

    from shardpass.importing.inline_calls import inline_calls
    from shardpass.ir.annotations import main_of
    from shardpass.ir.context import parse_module

    module = parse_module(
        re.sub(r"chlo\.square (%[\w#]+) : (tensor<\S+>) -> \S+", r"stablehlo.multiply \1, \1 : \2", text)
    )
    with module.context, ir.Location.unknown():
        inline_calls(module)
        _widen_indices(module)
        meshes = _meshes(module)
        types = main_of(module).attributes["function_type"].value
        whole = [*types.inputs, *types.results]
        shardings: list[str] = []
        for spellings in SHARDY:
            if spellings == LOCAL:
                shardings = _boundary_shardings(module, meshes)
            passes(spellings).run(module.operation)
        _annotate(module, whole, shardings)
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
    """Return the meshes of ``module``; in place of a mesh without axes, for replicated values, the largest."""
    from shardpass.ir.replica_groups import meshes_of

    meshes = meshes_of(module)
    axes = {name: getattr(mesh, "axes", ()) for name, mesh in meshes.items()}
    largest = max(meshes, key=lambda name: len(axes[name]), default="")
    return {name: mesh if axes[name] else meshes[largest] for name, mesh in meshes.items()}


def _boundary_shardings(module: Any, meshes: dict[str, Any]) -> list[str]:
    """Return mhlo text of the sharding of each argument and result of main."""
    from shardpass.ir.annotations import Signature, main_of
    from shardpass.sharding import Sharding
    from shardpass.sharding.notations.sdy import parse_sdy

    signature = Signature(main_of(module))
    attributes = [row.get("sdy.sharding") for row in (*signature.arguments, *signature.results)]
    return [str(Sharding.replicated() if text is None else parse_sdy(str(text), meshes)) for text in attributes]


def _annotate(module: Any, whole: list[Any], shardings: list[str]) -> None:
    from jaxlib.mlir import ir

    from shardpass.ir import annotations as names

    signature = names.Signature(names.main_of(module))
    for row, kind, sharding in zip((*signature.arguments, *signature.results), whole, shardings, strict=True):
        row.clear()
        row[names.SHARDING] = ir.StringAttr.get(names.MANUAL)
        row[names.TILED_SHARDING] = ir.StringAttr.get(sharding)
        row[names.GLOBAL_TYPE] = ir.TypeAttr.get(kind)
    signature.write()
