"""The models of test/integration/models on a mesh of Auto axes and on one of Explicit axes: whether the plans are one.

    python -m tools.bench.explicit_corpus                 all models, a line each
    python -m tools.bench.explicit_corpus attention mlp   those whose name or family begins so

Both forms are one function. Arguments have the model's specs, free ones whole; a value that the model constrains, and a
result that has a spec, is a constraint on Auto axes and a ``jax.reshard`` on Explicit ones. A plan is its collectives:
kind, axes, bytes received and how often. Where JAX raises an error of types on Explicit axes, the model cannot be
written there as it is, and the line has the error and its place; with ``--repair`` it is priced with the cheapest edits
that ``shardpass.suggest`` prints.
"""
