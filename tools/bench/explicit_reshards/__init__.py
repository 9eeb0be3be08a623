"""Whether reshards that cost more than they must are found in programs with explicit axes, and no others.

    python -m tools.bench.explicit_reshards [--only PART] [--partitioner xla]

Each program has one wasteful type put in, at the lines that end with ``# wasteful``, and types that it needs. Counted
are the wasteful lines that a finding of ``shardpass.explain`` is about, and findings about other lines. Exits with 1
where one is missed, or one is wrong.
"""
