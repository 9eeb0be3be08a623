"""The lit suite: ``lit -v test/lit`` from this folder. Scenarios are test/lit/<area>/<scenario>.mlir.

RUN lines may use: shardpass-opt, -run, -plan, -check, -check-replication, -explain, -suggest, -prove (of this checkout,
in the Python that runs lit), FileCheck (always the PyPI ``filecheck``), %PYTHON, %examples, and two ways to expect
failure:

    not shardpass-opt ...        some status from 1 to 127, and no Python traceback
    exits 2 shardpass-opt ...    this status, and no Python traceback

These commands run in forks of one process, FileCheck in it (test/support/lit_format.py). A file that says
``PROCESSES: real`` starts each in a Python of its own; each command has such a file. ``lit --param processes=all`` does
so for all files.

Features: jax-0.10 (the installed version), python-3.11, onnx.
"""

import importlib.util
import os
import re
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "test"))

from support.daily import QUICK  # noqa: E402
from support.lit_format import ForkedCommands  # noqa: E402

SUPPORT = ROOT / "test" / "lit" / "support"
SECONDS_PER_COMMAND = 120

config.name = "shardpass"  # noqa: F821  (lit runs this file with `config` defined)
config = config  # noqa: F821
config.test_format = ForkedCommands()
config.suffixes = [".mlir", ".test"]
config.excludes = ["support", "Inputs", ".venv", "out", "examples"]
config.test_source_root = str(ROOT)
config.test_exec_root = str(ROOT / "out" / "lit")

# Nothing of the caller's environment but what a process needs to run.
config.environment = {
    "PATH": "/usr/bin:/bin",
    "PYTHONPATH": str(ROOT),
    "LC_ALL": "C.UTF-8",
    "JAX_PLATFORMS": "cpu",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "COLUMNS": "100",
    "SHARDPASS_MACHINE": "ideal",  # small programs that stand for large ones
    "XLA_FLAGS": "" if lit_config.params.get("processes") == "all" else QUICK,  # noqa: F821
    **{name: os.environ[name] for name in ("HOME", "TMPDIR", "LD_LIBRARY_PATH") if name in os.environ},
}


def python(script: str, *arguments: object) -> str:
    return " ".join([f"'{sys.executable}'", f"'{SUPPORT / script}'", *map(str, arguments)])


def word(names: str) -> str:
    """A command's name: not a part of a path, an option, a pipeline or a longer name, nor after a module.

    (shardpass-check is a command and a pass: a pass that stands alone is better put in quotes.)
    """
    return rf"(?<![\w./%'\",(={{-])(?<!\.mlir )(?<! - ){names}(?![\w./,{{}})'\"-])"


COMMANDS = ("opt", "run", "plan", "check", "check-replication", "explain", "suggest", "prove")
FOREIGN = ("mlir-opt", "stablehlo-opt", "sdy_opt", "xla-opt", "mlir-translate", "python", "python3", "filecheck")

config.substitutions += [
    # in this order: each pattern sees what the earlier ones made
    *((word(name), f"{python('foreign.py')} {name}") for name in FOREIGN),
    (r"\bnot (?=shardpass-)", python("exits.py", "any") + " "),
    (r"\bexits (?=\d+ shardpass-)", python("exits.py") + " "),
    *((word(f"shardpass-{name}"), python("command.py", SECONDS_PER_COMMAND, name)) for name in COMMANDS),
    (word("FileCheck"), f"'{sys.executable}' -m filecheck --enable-var-scope --reject-empty-vars"),
    ("%PYTHON", f"'{sys.executable}'"),
    ("%examples", str(ROOT / "examples")),
]


def minor(text: str) -> str:
    found = re.match(r"\d+\.\d+", text)
    return found[0] if found else text


config.available_features |= {
    f"jax-{minor(version('jax'))}",
    f"python-{sys.version_info[0]}.{sys.version_info[1]}",
    *(["onnx"] if importlib.util.find_spec("onnx") else []),
}
