"""SP84x: programs over meshes with Explicit axes."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, Severity

NO_EDIT = Code(
    "SP840",
    "no edit was found with which the program traces; {expression} raised {error} (types: {types}), and {tried} edits "
    "were traced",
    remedy="say the sharding of the result by hand (`jax.reshard`, or `jax.sharding.auto_axes` around the op)",
    explanation="`suggest` of a function that raises an error of types tries an `out_sharding` at the op, a "
    "`jax.reshard` of its operands and other specs of arguments, and prints an edit only if the program was traced "
    "with the edit. Edits are tried in the user's own files alone, at expressions that the traceback shows.",
)

NO_CALL = Code(
    "SP841",
    "{error}, before the script called {function}, or in a call whose arguments are unknown",
    remedy="name the function that is jitted and called by its name in the script: `step = jax.jit(...)`, `step(x)`; "
    "or call shardpass.suggest(step, x) in the script",
    explanation="`shardpass suggest train.py:step` searches for edits where an error of types passes the call "
    "`step(...)` of a function that jax.jit, nnx.jit or the like returned.",
)

NO_WAIT = Code(
    "SP842",
    "the sum of {name} could wait over {axes}, but JAX does not trace the program with {spec}: {error}",
    severity=Severity.REMARK,
    remedy="add the products first and the other terms behind: `x + (a @ b + c @ d)`",
    explanation="`explain` of a program with explicit axes tries to let sums of products over devices wait: each "
    "`out_sharding` gets `unreduced={...}`, and the sum is completed once. JAX adds no whole array to a partial one.",
)

NOT_COMPILED = Code(
    "SP843",
    "{error}; a program that does not trace cannot be compiled by {partitioner}",
    remedy="repair the error first, with `suggest` as it is, and ask for {partitioner} then",
    explanation="Edits for an error of types are priced by shardpass's own plan, a hundred programs a search.",
)
