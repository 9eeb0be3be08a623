"""docs/jax.md: the text that it tells people to write names lines of their Python program."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

from shardpass.cli.explain import main

PAGE = (Path(__file__).parents[3] / "docs" / "jax.md").read_text()


def test_text_with_debug_info_names_the_line_of_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """8 columns over 4 devices are contracted, so partial sums are added up: because of the line with ``@``."""
    assert "lowered.as_text(debug_info=True)" in PAGE
    mesh = jax.make_mesh((4,), ("x",), devices=jax.devices()[:4], axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=jax.NamedSharding(mesh, P(None, "x")))
    file = tmp_path / "program.mlir"
    file.write_text(jax.jit(lambda x: x @ jnp.ones((8, 8))).lower(x).as_text(debug_info=True))
    assert main([str(file)]) == 0
    assert "test_jax_page.py:" in capsys.readouterr().out
