"""The mistakes: a right program of ``programs/``, what a user wrote instead, and whom the mistake is about.

``MISTAKES[kind]`` lists (program, text of the right program and what stands there instead, ..., the names of what is
annotated wrongly or was left without an annotation).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Swap = tuple[str, str]


@dataclass(frozen=True)
class Mistake:
    """``swaps``: texts of the right program, each there once, and the user's. ``about``: names in the edit."""

    program: str
    swaps: tuple[Swap, ...]
    about: tuple[str, ...]


def _behind(line: str, more: str) -> Swap:
    return line, f"{line}\n{more}"


def _constraint(name: str, spec: str, indent: int = 4) -> str:
    return f"{' ' * indent}{name} = jax.lax.with_sharding_constraint({name}, s({spec}))"


_MLP_H = '    h = jax.nn.relu(x @ params["up"])'
_SCAN_H = '    h = jax.nn.gelu(x @ p["up"])'
_TOWER_H = '    h = jax.nn.relu(x @ p["up"])'
_SCORES = '    scores = jnp.einsum("bqhk,bthk->bhqt", q, k)'
_HEADS_Q = '    q = split_heads(x @ p["q"])'
_HEADS_K = '    k = split_heads(x @ p["k"])'
_EMBEDDING = 'specs = {"table": s(None, "model"), "up": s(None, "model"), "down": s("model"), "head": s(None, "model")}'
_FSDP = (
    _EMBEDDING,
    'specs = {"table": s(None, "data"), "up": s("data", "model"), "down": s("model", "data"), '
    '"head": s("data", "model")}',
)
_ADAM_IN, _ADAM_OUT = "in_shardings=(specs, specs, specs, ", "out_shardings=(specs, specs, specs)"
_ATTENTION = '"q": s(None, "model"), "k": s(None, "model"), "v": s(None, "model"), "o": s("model")'

MISTAKES: Mapping[str, Sequence[Mistake]] = {
    "leftover constraint": (
        Mistake("mlp", (_behind(_MLP_H, _constraint("h", '"data"')),), ("h",)),
        Mistake("scan_layers", (_behind(_SCAN_H, _constraint("h", '"data"')),), ("h",)),
        Mistake("attention", (_behind(_SCORES, _constraint("scores", '"data"')),), ("scores",)),
        Mistake("two_towers", (_behind(_TOWER_H, _constraint("h", "")),), ("h",)),
        Mistake("heads_reshape", (_behind(_HEADS_K, _constraint("k", '"data"')),), ("k",)),
    ),
    "unsplit batch": (
        Mistake("mlp", (('in_shardings=(specs, s("data"), s("data"))', "in_shardings=(specs, s(), s())"),), ("x", "y")),
        Mistake("scan_layers", (('in_shardings=(specs, s("data"))', "in_shardings=(specs, s())"),), ("x",)),
        Mistake(
            "attention",
            (('in_shardings=(specs, s("data")), out_shardings=s("data")', "in_shardings=(specs, s())"),),
            ("x",),
        ),
        Mistake(
            "convnet", (('(s(), s(("data", "model"))), out_shardings=s(("data", "model"))', "(s(), s())"),), ("images",)
        ),
        Mistake(
            "recurrent",
            (('(specs, s(None, ("data", "model"))), out_shardings=s(("data", "model"))', "(specs, s())"),),
            ("xs",),
        ),
    ),
    "replicated state": (
        Mistake(
            "adam",
            ((_ADAM_IN, "in_shardings=(specs, s(), s(), "), (_ADAM_OUT, "out_shardings=(specs, s(), s())")),
            ("mu", "nu"),
        ),
        Mistake(
            "adam",
            (
                (_ADAM_IN, "in_shardings=(specs, specs, replicated, "),
                (_ADAM_OUT, "out_shardings=(specs, specs, replicated)"),
            ),
            ("nu",),
        ),
        Mistake(
            "adam",
            (
                (_ADAM_IN, "in_shardings=(specs, replicated, specs, "),
                (_ADAM_OUT, "out_shardings=(specs, replicated, specs)"),
            ),
            ("mu",),
        ),
        Mistake(
            "adam",
            (
                (_ADAM_IN, "in_shardings=(specs, replicated, replicated, "),
                (_ADAM_OUT, "out_shardings=(specs, replicated, replicated)"),
            ),
            ("mu", "nu"),
        ),
        Mistake(
            "flax_mlp",
            (("state_specs = jax.tree_util.tree_map_with_path(spec_of, state)", "state_specs = s()"),),
            ("state",),
        ),
    ),
    # of a table over data by columns, x is split so, and every product sums over data or gathers x
    "want of a constraint": (
        Mistake("embedding", (_FSDP,), ("x", "params")),
        Mistake("embedding", (('"table": s(None, "model")', '"table": s(None, "data")'),), ("x", "params['table']")),
        Mistake("embedding", (_FSDP, ("jnp.tanh(", "jax.nn.relu(")), ("x", "params")),
        Mistake("embedding", (_FSDP, ("(16, 64)", "(32, 64)")), ("x", "params")),
        Mistake(
            "two_towers",
            (
                (
                    'specs = {"up": s(None, "model"), "down": s("model", None)}',
                    'specs = {"up": s("data"), "down": s("data")}',
                ),
            ),
            ("params", "h"),
        ),
    ),
    "results forced replicated": (
        Mistake("attention", (('out_shardings=s("data")', "out_shardings=s()"),), ("result",)),
        Mistake("embedding", (('out_shardings=s("data", None, "model")', "out_shardings=s()"),), ("result",)),
        Mistake("heads_reshape", (('out_shardings=s("data")', "out_shardings=s()"),), ("result",)),
        Mistake("mlp", (("out_shardings=specs", "out_shardings=s()"),), ("result",)),
        Mistake("scan_layers", (("out_shardings=specs", "out_shardings=s()"),), ("result",)),
    ),
    "axis order": (
        Mistake("mlp", (('"up": s(None, "model")', '"up": s("model", None)'),), ("params['up']",)),
        Mistake(
            "scan_layers", (('"down": s(None, "model", None)', '"down": s(None, None, "model")'),), ("params['down']",)
        ),
        Mistake("attention", (('"o": s("model")', '"o": s(None, None, "model")'),), ("p['o']",)),
        Mistake("embedding", (('"head": s(None, "model")', '"head": s("model", None)'),), ("params['head']",)),
        Mistake("heads_reshape", (('"q": s(None, "model")', '"q": s("model", None)'),), ("p['q']",)),
    ),
    "a constraint over the wrong dimension": (
        Mistake("mlp", (_behind(_MLP_H, _constraint("h", '"model", "data"')),), ("h",)),
        Mistake("scan_layers", (_behind(_SCAN_H, _constraint("h", 'None, "data"')),), ("h",)),
        Mistake("attention", (_behind(_SCORES, _constraint("scores", '"data", None, "model"')),), ("scores",)),
        Mistake("two_towers", (_behind(_TOWER_H, _constraint("h", '"model"')),), ("h",)),
        Mistake("heads_reshape", (_behind(_HEADS_Q, _constraint("q", '"data", "model"')),), ("q",)),
    ),
    "a lookup, or work that every device does": (
        Mistake("embedding", (('"table": s(None, "model")', '"table": s("data", None)'),), ("params['table']",)),
        Mistake(
            "embedding",
            (
                ('"head": s(None, "model")', '"head": s()'),
                ('out_shardings=s("data", None, "model")', 'out_shardings=s("data")'),
            ),
            ("params['head']", "result"),
        ),
        Mistake(
            "convnet",
            (('s(("data", "model"))), out_shardings=s(("data", "model"))', 's("data")), out_shardings=s("data")'),),
            ("images",),
        ),
        Mistake(
            "mlp",
            (('specs = {"up": s(None, "model"), "down": s("model", None)}', 'specs = {"up": s(), "down": s()}'),),
            ("params", "x"),
        ),
        Mistake("attention", ((_ATTENTION, '"q": s(), "k": s(), "v": s(), "o": s()'),), ("p", "x")),
    ),
    "a size that does not divide": (
        # a vocabulary of 4097, which no JAX sharding splits over model, is left whole
        Mistake(
            "language_model",
            (("VOCABULARY = 4096", "VOCABULARY = 4097"), ('"head": s(None, "model")', '"head": s()')),
            ("params['head']",),
        ),
        # 10 heads over the 4 members of data: the constraint pads them to 12
        Mistake(
            "attention",
            (
                _behind(_SCORES, _constraint("scores", '"model", "data"')),
                (_ATTENTION, '"q": s(), "k": s(), "v": s(), "o": s()'),
                ('in_shardings=(specs, s("data")), out_shardings=s("data")', 'in_shardings=(specs, s("model"))'),
                *(
                    (f'"{name}": jax.ShapeDtypeStruct((256, 8, 32)', f'"{name}": jax.ShapeDtypeStruct((256, 10, 32)')
                    for name in "qkv"
                ),
                ("((8, 32, 256)", "((10, 32, 256)"),
            ),
            ("scores",),
        ),
    ),
    "an embedding lookup": (
        # rows of the table over the axis of the ids: each device lacks most rows that it looks up
        Mistake("recommender", (('"table": s(None, ("model", "data"))', '"table": s("data")'),), ("params['table']",)),
        # the whole table on every device: its gradient is added up in full
        Mistake("recommender", (('"table": s(None, ("model", "data"))', '"table": s()'),), ("params['table']",)),
    ),
}
