"""How often the first finding about XLA's program is the mistake that its user made.

    python -m tools.bench.mistakes [--only PART] [--right]

Each mistake of ``table.py`` is put into its program, the program is explained with ``partitioner="xla"``, and the first
finding's diff is applied to the source, which is then lowered and compiled anew. Counted are programs of which

- the first finding names what the mistake is about, or takes no more time and bytes than the right program does;
- each finding's diff, applied, receives and holds what the finding says, within 2%.

A line has both: the first as "named", "good" or "-", the second as those diffs of all. ``--right`` explains the
programs without mistakes: a line has the diffs that save what they say, of all, and the number of findings.
"""
