"""Child processes of tools: a module of this checkout, run as ``python -m`` from anywhere.

A benchmark or a fuzzer asks a child where XLA or a peer may end the process, or where a fresh process is the thing that
is measured.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs ``module`` in this interpreter; the folder that it runs in is not searched for modules."""
    return [sys.executable, "-P", "-m", module, *arguments]


def environment(**more: str) -> dict[str, str]:
    """The environment of a child: this one, with the checkout in front of all that is installed, and ``more``."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": path, **more}
