"""Random programs for the partition fuzzer: the table of all emitters, and the ops that no emitter makes.

To add an op, write an emitter ``def f(make: Maker) -> None`` that adds one valid op to a program or raises
``Unsuited``, in the file of its sort under tools/fuzz/generators, and put it into that file's ``EMITTERS`` with a
weight. Emitters keep the bound of each value below the greatest integer that its type represents exactly (see
``tools.values.Fact``). A test asks that every op of the registry is made, or is refused, or stands in ``NEVER_MADE``
with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from random import Random

from shardpass.ops.families.elementwise import MHLO
from tools.fuzz.generators import (
    chlo_broadcasts,
    control_flow,
    elementwise,
    indexing,
    linear_algebra,
    manual_regions,
    reductions,
    shapes,
    sources,
    windows,
)
from tools.fuzz.maker import ELEMENTS, Maker
from tools.fuzz.programs import Program, every_node, over
from tools.fuzz.random_sharding import MESHES
from tools.values import Fact, Type

SORTS = (
    elementwise.EMITTERS,
    chlo_broadcasts.EMITTERS,
    sources.EMITTERS,
    shapes.EMITTERS,
    reductions.EMITTERS,
    windows.EMITTERS,
    indexing.EMITTERS,
    linear_algebra.EMITTERS,
    control_flow.EMITTERS,
)
INSIDE = {emit: weight for sort in SORTS for emit, weight in sort.items()}
EMITTERS = {**INSIDE, **manual_regions.EMITTERS}  # manual regions do not nest in control flow

_HOST = "it waits for the host, or orders what does"
_WHOLE = "has one value in a program of one replica: nothing to compare"
_QUANTIZED = "JAX's context has no quantized types"
_NO_XLA = "XLA does not compile it"
NEVER_MADE = {
    "stablehlo.infeed": _HOST, "stablehlo.outfeed": _HOST, "stablehlo.send": _HOST, "stablehlo.recv": _HOST,
    "stablehlo.after_all": _HOST, "stablehlo.create_token": _HOST,
    "stablehlo.async_start": "wraps a collective of one device's program", "stablehlo.async_done": "as async_start",
    "stablehlo.tuple": "XLA flattens tuples before StableHLO is written", "stablehlo.get_tuple_element": "as tuple",
    "stablehlo.replica_id": _WHOLE, "stablehlo.cross-replica-sum": _WHOLE,
    "stablehlo.collective_reduce": "the installed StableHLO does not know it",
    "stablehlo.uniform_quantize": _QUANTIZED, "stablehlo.uniform_dequantize": _QUANTIZED,
    "stablehlo.collective_broadcast": "XLA does not run it on CPU",
    "stablehlo.unary_einsum": _NO_XLA, "chlo.scan": _NO_XLA,
    "chlo.ragged_dot": "XLA does not run it on CPU", "mhlo.ragged_dot": "XLA does not run it",
    **dict.fromkeys(MHLO, "JAX writes CHLO's op of the name"),
    **{
        f"stablehlo.{name}": "its shape is an operand"
        for name in ("dynamic_broadcast_in_dim", "dynamic_conv", "dynamic_gather", "dynamic_iota", "dynamic_pad",
                     "dynamic_reshape", "real_dynamic_slice", "set_dimension_size")
    },
}  # fmt: skip


def random_program(seed: int, max_ops: int = 12) -> Program:
    """The program of ``seed``: the same for ever, on every machine."""
    rng = Random(seed)
    make = Maker(rng, rng.choice(MESHES), INSIDE)
    for _ in range(rng.randint(1, 3)):
        fact = Fact(Type(make.shape(), rng.choice(ELEMENTS)))
        if fact.type.element == "i1":
            fact = replace(fact, bound=1)
        make.arguments.append((fact, make.sharding(fact.type.shape, 0.75)))
    make.grow(rng.randint(1, max_ops), EMITTERS)
    return _finished(make, seed)


def _finished(make: Maker, seed: int) -> Program:
    """Every value that no op uses is a result, the last four of them."""
    used = {v for node in make.nodes for v in (*node.operands, *node.captured)}
    facts = make.facts
    leaves = [i for i in range(len(make.arguments), len(facts)) if i not in used][-4:]
    leaves = leaves or [len(facts) - 1]
    results = tuple((i, make.sharding(facts[i].type.shape, 0.4)) for i in leaves)
    eager = make.rng.random() < 0.8
    program = Program(make.mesh.size, tuple(make.arguments), tuple(make.nodes), results, seed, eager)
    return over(program, make.mesh) if make.rng.random() < 0.4 else program


def ops_of(program: Program) -> Iterable[str]:
    """The names of the ops in ``program``, one for each that it has."""
    for node in every_node(program.nodes):
        if node.lines:
            yield from re.findall(r"(?:stablehlo|chlo)\.(?=[a-z])[a-z_]+(?=[\"\s])", " ".join(node.lines))
        else:
            yield node.name
            yield from re.findall(r"(?:stablehlo)\.[a-z_]+(?=[\"\s])", node.regions)
        yield from ["stablehlo.return"] * len(node.blocks)
