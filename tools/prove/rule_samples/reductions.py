"""Samples for the rule prover: reductions, argmax, top_k."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tools.prove.rule_samples.sample import EVEN, ODD, Sample
from tools.stablehlo_text import array, body
from tools.values import DTYPES, Type


def reduce() -> Iterator[Sample]:
    identity = {
        "f32": {"add": "0.0", "multiply": "1.0", "maximum": "0xFF800000", "minimum": "0x7F800000"},
        "i32": {"add": "0", "multiply": "1", "and": "-1", "or": "0",
                "maximum": str(-(2**31)), "minimum": str(2**31 - 1)},
        "ui8": {"add": "0", "maximum": "0", "minimum": "255", "and": "255", "or": "0"},
        "i8": {"maximum": "-128", "minimum": "127"},
        "i1": {"and": "true", "or": "false", "maximum": "false", "minimum": "true", "add": "false"},
        "bf16": {"add": "0.0", "maximum": "0xFF80"},
        "f64": {"minimum": "0x7FF0000000000000"},
        "complex<f32>": {"add": "(0.0, 0.0)", "multiply": "(1.0, 0.0)"},
    }  # fmt: skip
    for element, inits in identity.items():
        for op, init in inits.items():
            yield _reduce(element, op, init, EVEN, (1,))
            yield _reduce(element, op, init, ODD, (0,))
    yield _reduce("f32", "add", "0.0", (4, 6), (0, 1))
    yield _reduce("f32", "maximum", "0xFF800000", (4, 3, 6), (0, 2))
    yield _reduce("f32", "add", "0.0", EVEN, ())
    for op, init in (("add", "1.0"), ("add", "-0.0"), ("maximum", "0.0"), ("multiply", "2.0"), ("subtract", "0.0")):
        yield _reduce("f32", op, init, EVEN, (1,))


def _reduce(element: str, op: str, init: str, shape_: tuple[int, ...], dims: tuple[int, ...]) -> Sample:
    scalar = Type((), element)
    data = {}
    if element == "i1":  # nearly all the combiner's identity, so that a part seldom tells the whole
        identity = op in ("and", "minimum")
        data[0] = np.full(shape_, identity)
        data[0][0, 0] = data[0][-1, -1] = not identity
    elif op in ("maximum", "minimum"):  # all different, so that no part tells the whole
        count = int(np.prod(shape_))
        data[0] = np.asarray(np.arange(count) * 7 % count, DTYPES[element]).reshape(shape_)
    target = tuple(n for d, n in enumerate(shape_) if d not in dims)
    return Sample(
        "stablehlo.reduce", (Type(shape_, element),), (Type(target, element),), f"dimensions = {array(dims)}",
        body(element, op), f"%init = stablehlo.constant dense<{init}> : {scalar}", ("%init",), (str(scalar),),
        data=data, note=f"{op} from {init}", interpreted=element in ("f32", "i32", "i1"),
    )  # fmt: skip


ARGMAX = """{
  ^bb0(%x: tensor<f32>, %i: tensor<i32>, %y: tensor<f32>, %j: tensor<i32>):
    %gt = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %eq = stablehlo.compare EQ, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %lt = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %both = stablehlo.and %eq, %lt : tensor<i1>
    %take = stablehlo.or %gt, %both : tensor<i1>
    %v = stablehlo.select %take, %x, %y : tensor<i1>, tensor<f32>
    %p = stablehlo.select %take, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %v, %p : tensor<f32>, tensor<i32>
}"""


def argreduce() -> Iterator[Sample]:
    """argmax along either dimension; positions are an operand."""
    before = (
        "%v0 = stablehlo.constant dense<0xFF800000> : tensor<f32>\n    %p0 = stablehlo.constant dense<99> : tensor<i32>"
    )
    for shape, dim in (((4, 6), 1), ((5, 3), 0), ((4, 1), 1)):
        target = (shape[1 - dim],)
        places = np.broadcast_to(np.expand_dims(np.arange(shape[dim], dtype=np.int32), 1 - dim), shape)
        yield Sample(
            "stablehlo.reduce", (Type(shape, "f32"), Type(shape, "i32")), (Type(target, "f32"), Type(target, "i32")),
            f"dimensions = {array((dim,))}", ARGMAX, before, ("%v0", "%p0"), ("tensor<f32>", "tensor<i32>"),
            data={1: np.ascontiguousarray(places)}, note="argmax",
        )  # fmt: skip


def top_k() -> Iterator[Sample]:
    for shape, k in (((4, 6), 2), ((5, 7), 3), ((8,), 5), ((3, 6), 6)):
        result = (*shape[:-1], k)
        yield Sample(
            "chlo.top_k", (Type(shape, "f32"),), (Type(result, "f32"), Type(result, "i32")), f"k = {k} : i64",
            interpreted=False,
        )  # fmt: skip
