"""Programs as planning sees them: text, imported and read."""

from __future__ import annotations

from shardpass.diagnostics import collect
from shardpass.pipeline.run import run_pipeline
from shardpass.program.program import Program
from shardpass.program.table import table_of


def read(text: str) -> Program:
    """The facts of the module ``text`` after the pipeline "import"."""
    with collect():
        module = run_pipeline(text, "import")
        with module.context:
            return table_of(module, "test").program
