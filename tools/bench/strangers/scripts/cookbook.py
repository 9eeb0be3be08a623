"""JAX's training cookbook over 8 devices, with explicit axes and states that are changed in place."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parent / "jax" / "docs" / "the-training-cookbook.py"), run_name="__main__")
