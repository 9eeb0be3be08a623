"""Kernels of If, Loop and Scan: StableHLO branches and loops, unless constants decide the result.

A kernel here also takes ``run``, which traces a graph of the node on values of its inputs; names of the outer graph are
seen inside. A Loop becomes, in this order of preference:

1. a scan, where the number of trips is constant, the condition never changes and the state keeps its types;
2. its iterations one behind the other, where the condition of each is constant and there are at most ``MOST_UNROLLED``;
3. a while loop, where it has no scan outputs, whose number would depend on data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shardpass.onnx.kernels.common import Array, Unsupported, numbers, optional
from shardpass.onnx.model import Node

Run = Callable[[Any, Sequence[Any]], list[Any]]  # a GraphProto and the values of its inputs -> those of its outputs
ControlKernel = Callable[[Node, Sequence[Any], Run], tuple[Array, ...]]

MOST_UNROLLED = 64


def _if(node: Node, inputs: Sequence[Any], run: Run) -> tuple[Array, ...]:
    branches = node.attributes["then_branch"], node.attributes["else_branch"]
    condition = inputs[0]
    if isinstance(condition, np.ndarray):
        return tuple(run(branches[0 if condition.reshape(-1)[0] else 1], ()))
    results = jax.lax.cond(
        jnp.reshape(condition, ()),
        *(lambda branch=branch: tuple(map(_array, run(branch, ()))) for branch in branches),
    )
    return tuple(results)


def _array(value: Any) -> Any:
    """Check a branch's result: an array, or a sequence of arrays, which JAX treats as several results."""
    if isinstance(value, list):
        return [jnp.asarray(item) for item in value]
    if not isinstance(value, jax.Array | np.ndarray):
        raise Unsupported("data decide between its branches, and one gives an optional value")
    return jnp.asarray(value)


def _scan(node: Node, inputs: Sequence[Any], run: Run) -> tuple[Array, ...]:
    body, count = node.attributes["body"], node.attributes["num_scan_inputs"]
    states = [jnp.asarray(value) for value in inputs[: len(inputs) - count]]
    arrays = [jnp.asarray(value) for value in inputs[len(states) :]]
    outputs = len(body.output) - len(states)
    into, out = (node.attributes.get(f"scan_{side}_axes") for side in ("input", "output"))
    back_in, back_out = (node.attributes.get(f"scan_{side}_directions") for side in ("input", "output"))
    moved = [jnp.moveaxis(array, axis, 0) for array, axis in zip(arrays, into or [0] * count, strict=True)]
    moved = [
        jnp.flip(array, 0) if backwards else array
        for array, backwards in zip(moved, back_in or [0] * count, strict=True)
    ]

    def step(state: Any, slices: Any) -> tuple[Any, Any]:
        results = [jnp.asarray(value) for value in run(body, [*state, *slices])]
        return _as_before(results[: len(states)], state), results[len(states) :]

    ends, stacked = jax.lax.scan(step, states, moved)
    stacked = [
        jnp.moveaxis(jnp.flip(array, 0) if backwards else array, 0, axis)
        for array, backwards, axis in zip(stacked, back_out or [0] * outputs, out or [0] * outputs, strict=True)
    ]
    return *ends, *stacked


def _as_before(values: Sequence[Array], before: Sequence[Array]) -> list[Array]:
    for value, old in zip(values, before, strict=True):
        if value.shape != old.shape or value.dtype != old.dtype:
            raise Unsupported(f"its state changes from {old.dtype}{old.shape} to {value.dtype}{value.shape}")
    return list(values)


# ------------------------------------------------------------------------------------- loops


def _loop(node: Node, inputs: Sequence[Any], run: Run) -> tuple[Array, ...]:
    body, most, condition = node.attributes["body"], optional(inputs, 0), optional(inputs, 1)
    states = list(inputs[2:])
    trips = None if most is None or not isinstance(most, np.ndarray) else numbers(most, "trip count")[0]
    starts = condition is None or (isinstance(condition, np.ndarray) and bool(condition.reshape(-1)[0]))
    if trips is not None and starts and _condition_stays(body) and trips > 0 and _are_arrays(states):
        try:
            return _scanned(body, states, trips, run)
        except (Unsupported, TypeError):  # the shapes inside depend on the iteration
            if trips > MOST_UNROLLED:
                raise
    if (most is None or trips is not None) and (condition is None or isinstance(condition, np.ndarray)):
        results = _unrolled(body, states, trips, True if condition is None else condition, run)
        if results is not None:
            return results
    if len(body.output) > 1 + len(states):
        raise Unsupported("how long its scan outputs are depends on data")
    return _while(body, states, most, condition, run)


def _are_arrays(values: Sequence[Any]) -> bool:
    return not any(isinstance(value, list) for value in values)


def _condition_stays(body: Any) -> bool:
    """Return whether the body returns its condition argument, or a constant true."""
    import onnx

    made_by = {name: node for node in body.node for name in node.output}
    constants = {tensor.name: tensor for tensor in body.initializer}
    name = body.output[0].name
    while name in made_by and made_by[name].op_type == "Identity":
        name = made_by[name].input[0]
    if name == body.input[1].name:
        return True
    tensor = constants.get(name)
    if name in made_by and made_by[name].op_type == "Constant":
        tensor = made_by[name].attribute[0].t
    return tensor is not None and bool(onnx.numpy_helper.to_array(tensor).reshape(-1)[0])


def _scanned(body: Any, states: Sequence[Any], trips: int, run: Run) -> tuple[Array, ...]:
    first = [jnp.asarray(value) for value in states]

    def step(state: Any, index: Any) -> tuple[Any, Any]:
        results = [jnp.asarray(value) for value in run(body, [index, np.asarray(True), *state])[1:]]
        return _as_before(results[: len(first)], state), results[len(first) :]

    ends, stacked = jax.lax.scan(step, first, np.arange(trips, dtype=np.int64))
    return *ends, *stacked


def _unrolled(body: Any, states: list[Any], trips: int | None, condition: Any, run: Run) -> tuple[Array, ...] | None:
    """Build the iterations in sequence; None if a condition is not constant, or for too many iterations."""
    scanned: list[list[Any]] = [[] for _ in range(len(body.output) - 1 - len(states))]
    index = 0
    while (trips is None or index < trips) and bool(np.asarray(condition).reshape(-1)[0]):
        if index == MOST_UNROLLED:
            return None
        condition, *results = run(body, [np.asarray(index, np.int64), np.asarray(condition), *states])
        if not isinstance(condition, np.ndarray):
            return None
        states, outputs = results[: len(states)], results[len(states) :]
        for column, value in zip(scanned, outputs, strict=True):
            column.append(jnp.asarray(value))
        index += 1
    if not index and scanned:
        raise Unsupported("it runs no iteration, and the shapes of its scan outputs are not known")
    return *states, *(jnp.stack(column) for column in scanned)


def _while(body: Any, states: Sequence[Any], most: Any, condition: Any, run: Run) -> tuple[Array, ...]:
    first = [jnp.asarray(value) for value in states]
    limit = None if most is None else jnp.reshape(jnp.asarray(most), ()).astype(np.int64)
    going = jnp.asarray(True) if condition is None else jnp.reshape(jnp.asarray(condition), ()).astype(bool)

    def goes_on(carry: Any) -> Any:
        index, going, _ = carry
        return going if limit is None else going & (index < limit)

    def step(carry: Any) -> Any:
        index, going, state = carry
        again, *results = (jnp.asarray(value) for value in run(body, [index, going, *state]))
        return index + 1, jnp.reshape(again, ()).astype(bool), _as_before(results, state)

    return tuple(jax.lax.while_loop(goes_on, step, (jnp.asarray(0, np.int64), going, first))[2])


KERNELS: Mapping[str, ControlKernel] = {"If": _if, "Loop": _loop, "Scan": _scan}
