"""How often the first finding about XLA's program is the mistake that its user made.

    python -m tools.bench.mistakes [--only PART] [--right]

Each mistake of ``table.py`` is put into its program, the program is explained with ``partitioner="xla"``, and the first
finding's diff is applied to the source, which is then lowered and compiled anew. Counted are programs of which

- the first finding names what the mistake is about, or takes no more time and bytes than the right program does;
- the finding's diff, applied, receives and holds what the finding says, within 2%.

``--right`` explains the programs without mistakes, and counts those of which an edit is printed.
"""
