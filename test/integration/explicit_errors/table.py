"""The errors: in which program, and what the wrong program says in the place of the right one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True, slots=True)
class Mistake:
    """``changes``: (right, wrong) texts, each once in the function."""

    file: str
    function: str
    changes: tuple[tuple[str, str], ...]

    @property
    def right(self) -> str:
        """The text of the right file."""
        return (PROGRAMS / f"{self.file}.py").read_text()

    @property
    def wrong(self) -> str:
        """The text of the file with the error. Raises ValueError where a change has not one place in it."""
        text = self.right
        for right, wrong in self.changes:
            if text.count(right) != 1:
                raise ValueError(f"{self.function}: {right!r} stands {text.count(right)} times in {self.file}.py")
            text = text.replace(right, wrong)
        return text


def _one(file: str, function: str, right: str, wrong: str) -> Mistake:
    return Mistake(file, function, ((right, wrong),))


ROWS = ', out_sharding=P("data", None)'
WHOLE_ROWS = 'jax.reshard(x, P("data", None))'
CUBE = ', out_sharding=P("data", None, None)'

MISTAKES = (
    _one("feedforward", "mlp", f'"bf,fd->bd", h, down{ROWS}', '"bf,fd->bd", h, down'),
    _one("feedforward", "mlp_train", f'jnp.matmul(h, params["down"]{ROWS})', 'h @ params["down"]'),
    _one("feedforward", "gated", f"jnp.dot(h, down{ROWS})", "jnp.dot(h, down)"),
    _one("feedforward", "towers", f"jnp.matmul(x, w{ROWS})", "jnp.matmul(x, w)"),
    _one("feedforward", "fsdp", "jnp.matmul(x, jax.reshard(w, P(None, None)))", "x @ w"),
    _one("feedforward", "two_layers", f"jnp.matmul(h, down{ROWS})", "h @ down"),
    _one("attention", "attention", f"mixed_heads, wo{CUBE}", "mixed_heads, wo"),
    _one(
        "attention", "merged_heads", '(b, s, 3, 8, 16), out_sharding=P("data", None, None, "model")', "(b, s, 3, 8, 16)"
    ),
    _one(
        "attention",
        "masked",
        'jax.reshard(jnp.broadcast_to(mask[:, None], scores.shape), P("data", "model"))',
        "jnp.broadcast_to(mask[:, None], scores.shape)",
    ),
    _one("attention", "cache", '    new = jax.reshard(new, P("data", None, "model", None))\n', ""),
    _one("attention", "prefix", 'jax.reshard(prefix_keys, P("data", None, "model", None))', "prefix_keys"),
    Mistake(
        "attention",
        "block",
        (
            (f'mixed, params["o"]{CUBE}', 'mixed, params["o"]'),
            (f'jnp.matmul(h, params["down"]{CUBE})', 'h @ params["down"]'),
        ),
    ),
    _one("attention", "block_train", f'mixed, params["o"]{CUBE}', 'mixed, params["o"]'),
    _one("attention", "grouped", ', out_sharding=P("data", None, None, "model", None))', ")"),
    _one("attention", "sequence", 'jax.reshard(x * norm, P("data", None, None))', "x * norm"),
    _one("gathers", "embedding", f"    h = table.at[ids].get({CUBE[2:]})", "    h = table[ids]"),
    _one("gathers", "embedding_train", f"jnp.mean(table.at[ids].get({CUBE[2:]}) ** 2)", "jnp.mean(table[ids] ** 2)"),
    _one("gathers", "dispatch", 'x, assignment, out_sharding=P("model", None, None)', "x, assignment"),
    _one("gathers", "gating", 'jax.reshard(logits, P("data", None))', "logits"),
    _one("gathers", "ranking", 'jax.reshard(scores, P(("data", "model"), None))', "scores"),
    _one("gathers", "sampling", 'jax.reshard(probabilities, P("data", None))', "probabilities"),
    _one("gathers", "experts", f"down, weights{ROWS}", "down, weights"),
    _one("gathers", "combine", f"outputs, weights{ROWS}", "outputs, weights"),
    _one("gathers", "order", f"rows.at[places].get({ROWS[2:]})", "rows[places]"),
    _one("gathers", "counts", ', out_sharding=P("model", None))', ")"),
    _one("loops", "layers", 'second, out_sharding=P("data", None)', 'second, out_sharding=P("data", "model")'),
    _one("loops", "microbatches", 'jax.reshard(jnp.zeros(params.shape), P(None, "model"))', "jnp.zeros(params.shape)"),
    _one("loops", "recurrent", '    start = jax.reshard(start, P("data", "model"))\n', ""),
    _one("loops", "iterations", '        v = jax.reshard(v, P("model"))\n', ""),
    _one("loops", "branches", f"def skip(x):\n        return {WHOLE_ROWS}", "def skip(x):\n        return x"),
    _one(
        "loops", "constraint", 'jax.reshard(h, P("data", None))', 'jax.lax.with_sharding_constraint(h, P("data", None))'
    ),
    _one("loops", "local", '    rows = jax.reshard(x, P(("data", "model"), None))\n', "    rows = x\n"),
    _one("loops", "optimizer", 'jax.reshard(jnp.zeros(state.shape), P(None, "model"))', "jnp.zeros(state.shape)"),
    _one("loops", "choice", f"def rows(x):\n        return {WHOLE_ROWS}", "def rows(x):\n        return x"),
    _one("loops", "remembered", f"jnp.matmul(jnp.tanh(h @ up), down{ROWS})", "jnp.tanh(h @ up) @ down"),
    _one("modules", "module", f"nnx.relu(self.up(x)){ROWS}", "nnx.relu(self.up(x))"),
    _one("modules", "module_train", f"nnx.relu(self.up(x)){ROWS}", "nnx.relu(self.up(x))"),
    _one("modules", "tokens", f"self.embed(ids{CUBE})", "self.embed(ids)"),
    _one("modules", "scores", f"attend(self.norm(h){CUBE})", "attend(self.norm(h))"),
    _one("vision", "convolution", ", out_sharding=rows)", ")"),
    _one("vision", "patches", ', out_sharding=P("data", "model", None, None, None, None))', ")"),
    _one("vision", "areas", 'jax.reshard(images, P(("data", "model"), None, None, None))', "images"),
)
