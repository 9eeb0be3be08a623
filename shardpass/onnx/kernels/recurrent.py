"""LSTM, GRU and RNN: a loop over time for each direction, by lax.scan.

A step reads a slice of the input and the state, and gives the new state, whose first array is the output. Behind the
end of a sequence the state stays and the output is 0. The reverse direction runs the same loop from the last step to
the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shardpass.onnx.kernels.common import Array, Kernel, Unsupported, optional
from shardpass.onnx.model import Node

Function = Callable[[Array], Array]
State = tuple[Array, ...]
Step = Callable[[Array, State], State]


def _functions(node: Node, direction: int, defaults: Sequence[str]) -> list[Function]:
    """Return the activations of one direction; parameters are assigned in order to activations that take any."""
    names = [*(node.attributes.get("activations") or [])]
    names = [name.decode() if isinstance(name, bytes) else name for name in names] or [*defaults, *defaults]
    alphas = iter(node.attributes.get("activation_alpha") or [])
    betas = iter(node.attributes.get("activation_beta") or [])
    made = [_activation(name.lower(), alphas, betas) for name in names]
    return made[direction * len(defaults) : (direction + 1) * len(defaults)]


_PLAIN: Mapping[str, Function] = {
    "relu": lambda x: jnp.maximum(x, 0),
    "sigmoid": jax.nn.sigmoid,
    "softplus": lambda x: jnp.logaddexp(x, 0),
    "softsign": jax.nn.soft_sign,
    "tanh": jnp.tanh,
}
_WITH_ALPHA: Mapping[str, tuple[float, Callable[[Array, float], Array]]] = {
    "elu": (1.0, lambda x, a: jnp.where(x < 0, a * jnp.expm1(x), x)),
    "leakyrelu": (0.01, lambda x, a: jnp.where(x < 0, a * x, x)),
    "thresholdedrelu": (1.0, lambda x, a: jnp.where(x > a, x, 0)),
}
_WITH_BOTH: Mapping[str, tuple[float, float, Callable[[Array, float, float], Array]]] = {
    "affine": (1.0, 0.0, lambda x, a, b: a * x + b),
    "hardsigmoid": (0.2, 0.5, lambda x, a, b: jnp.clip(a * x + b, 0, 1)),
    "scaledtanh": (1.0, 1.0, lambda x, a, b: a * jnp.tanh(b * x)),
}


def _activation(name: str, alphas: Any, betas: Any) -> Function:
    if name in _PLAIN:
        return _PLAIN[name]
    if name in _WITH_ALPHA:
        default, function = _WITH_ALPHA[name]
        alpha = next(alphas, default)
        return lambda x: function(x, alpha)
    if name in _WITH_BOTH:
        one, other, both = _WITH_BOTH[name]
        alpha, beta = next(alphas, one), next(betas, other)
        return lambda x: both(x, alpha, beta)
    raise Unsupported(f"its activation '{name}' is unknown")


def _lstm(node: Node, inputs: Sequence[Any], direction: int, bound: Function) -> Step:
    """Gate in the order input, output, forget, cell; peepholes in the order input, output, forget."""
    first, cell, last = _functions(node, direction, ("Sigmoid", "Tanh", "Tanh"))
    w, r, b = _weights(inputs, direction)
    peepholes = optional(inputs, 7)
    pi, po, pf = (0, 0, 0) if peepholes is None else jnp.split(jnp.asarray(peepholes)[direction], 3)
    bias = 0 if b is None else sum(jnp.split(b, 2))

    def step(x: Array, state: State) -> State:
        h, c = state
        i, o, f, g = jnp.split(x @ w.T + h @ r.T + bias, 4, axis=-1)
        i = first(bound(i + pi * c))
        f = 1 - i if node.attributes.get("input_forget") else first(bound(f + pf * c))
        c = f * c + i * cell(bound(g))
        return first(bound(o + po * c)) * last(c), c

    return step


def _gru(node: Node, inputs: Sequence[Any], direction: int, bound: Function) -> Step:
    """Gate in the order update, reset, hidden."""
    gate, hidden = _functions(node, direction, ("Sigmoid", "Tanh"))
    w, r, b = _weights(inputs, direction)
    wz, wr, wh = jnp.split(w, 3)
    rz, rr, rh = jnp.split(r, 3)
    bz, br, bh, cz, cr, ch = (0,) * 6 if b is None else jnp.split(b, 6)

    def step(x: Array, state: State) -> State:
        (h,) = state
        z = gate(bound(x @ wz.T + h @ rz.T + bz + cz))
        reset = gate(bound(x @ wr.T + h @ rr.T + br + cr))
        linear = node.attributes.get("linear_before_reset")
        past = reset * (h @ rh.T + ch) if linear else (reset * h) @ rh.T + ch
        return ((1 - z) * hidden(bound(x @ wh.T + past + bh)) + z * h,)

    return step


def _rnn(node: Node, inputs: Sequence[Any], direction: int, bound: Function) -> Step:
    (function,) = _functions(node, direction, ("Tanh",))
    w, r, b = _weights(inputs, direction)
    bias = 0 if b is None else sum(jnp.split(b, 2))
    return lambda x, state: (function(bound(x @ w.T + state[0] @ r.T + bias)),)


def _weights(inputs: Sequence[Any], direction: int) -> tuple[Array, Array, Array | None]:
    bias = optional(inputs, 3)
    w, r = (jnp.asarray(inputs[k])[direction] for k in (1, 2))
    return w, r, None if bias is None else jnp.asarray(bias)[direction]


def _recurrent(make: Callable[[Node, Sequence[Any], int, Function], Step], states: int) -> Kernel:
    def kernel(node: Node, inputs: Sequence[Any]) -> tuple[Array, ...]:
        batch_first = bool(node.attributes.get("layout"))
        x = jnp.asarray(inputs[0])
        x = jnp.swapaxes(x, 0, 1) if batch_first else x
        runs = _directions(node)
        limit = node.attributes.get("clip")
        bound: Function = (lambda v: v) if limit is None else (lambda v: jnp.clip(v, -limit, limit))
        outputs, ends = [], []
        for direction, backwards in enumerate(runs):
            step = make(node, inputs, direction, bound)
            start = tuple(_first(inputs, 5 + k, x, direction, batch_first) for k in range(states))
            out, end = _over_time(step, x, start, optional(inputs, 4), backwards)
            outputs.append(out)
            ends.append(end)
        y = jnp.stack(outputs, 1)  # [time, directions, batch, hidden]
        last = [jnp.stack(one, 0) for one in zip(*ends, strict=True)]
        if batch_first:
            return jnp.transpose(y, (2, 0, 1, 3)), *(jnp.swapaxes(one, 0, 1) for one in last)
        return (y, *last)

    return kernel


def _directions(node: Node) -> tuple[bool, ...]:
    """Return, for each direction, whether it runs backward."""
    name = node.attributes.get("direction", "forward")
    return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[name]


def _first(inputs: Sequence[Any], index: int, x: Array, direction: int, batch_first: bool) -> Array:
    given = optional(inputs, index)
    if given is None:
        return jnp.zeros((x.shape[1], np.shape(inputs[2])[-1]), x.dtype)
    given = jnp.asarray(given)
    return given[:, direction] if batch_first else given[direction]


def _over_time(step: Step, x: Array, start: State, lengths: Any, backwards: bool) -> tuple[Array, State]:
    times = jnp.arange(x.shape[0])

    def body(state: State, now: tuple[Array, Array]) -> tuple[State, Array]:
        slice_, time = now
        new = tuple(value.astype(old.dtype) for value, old in zip(step(slice_, state), state, strict=True))
        if lengths is None:
            return new, new[0]
        alive = (time < jnp.asarray(lengths))[:, None]
        kept = tuple(jnp.where(alive, value, old) for value, old in zip(new, state, strict=True))
        return kept, jnp.where(alive, new[0], 0)

    end, out = jax.lax.scan(body, start, (x, times), reverse=backwards)
    return out, end


KERNELS: Mapping[str, Kernel] = {
    "GRU": _recurrent(_gru, 1),
    "LSTM": _recurrent(_lstm, 2),
    "RNN": _recurrent(_rnn, 1),
}
