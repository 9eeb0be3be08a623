"""Builds the wheel and the source distribution, installs each in an empty environment, and tries what is installed.

python tools/package/try_package.py              both, in folders of their own under out/package
python tools/package/try_package.py --only wheel

Runs with any Python from 3.11 and needs nothing but pip. The files are built from a copy of what git tracks, so that a
file which was forgotten in the package is missed here and not at a user's. The environments see no source tree: the
tries run in an empty folder, with ``-I``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "package"
EXTRAS = ("notebook", "onnx", "test")
COMMANDS = ("opt", "run", "plan", "check", "explain")

# Each door of the package once: parsing, planning, partitioning, compiling and running on eight devices, the hook.
TRY = """
import jax
jax.config.update("jax_num_cpu_devices", 8)
import numpy as np
import shardpass
assert "site-packages" in shardpass.__file__, shardpass.__file__
assert shardpass.__version__[0].isdigit(), shardpass.__version__
text = '''
func.func @main(%x: tensor<16x8xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"})
    -> (tensor<16x8xf32> {mhlo.sharding = "{devices=[1,8]<=[8]}"}) {
  %0 = stablehlo.negate %x : tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}
'''
x = np.arange(128, dtype=np.float32).reshape(16, 8)
np.testing.assert_array_equal(np.asarray(shardpass.compile(shardpass.run_pipeline(text, "partition"))(x)[0]), -x)
mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
split = jax.device_put(x, jax.NamedSharding(mesh, jax.P("x")))
with shardpass.jax.use():
    np.testing.assert_array_equal(np.asarray(jax.jit(lambda v: v.T @ v)(split)), x.T @ x)
assert shardpass.jax.stats()["partitioned"] >= 1
print("tried", shardpass.__version__)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=("wheel", "sdist"), help="try one of the two")
    only = parser.parse_args().only
    if OUT.exists():
        shutil.rmtree(OUT)
    files = build(OUT / "dist")
    for kind, file in files.items():
        if only in (None, kind):
            started = time.monotonic()
            try_installed(file, OUT / kind)
            print(f"{file.name}: installed in an empty environment and tried in {time.monotonic() - started:.0f} s")
    return 0


def build(into: Path) -> dict[str, Path]:
    """The wheel and the source distribution of what git tracks, built by pip's own front end."""
    source = copied(into.parent / "source")
    builder = environment(into.parent / "builder")
    call(builder, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "build")
    call(builder, "-m", "build", "--outdir", into, source)
    (wheel,), (sdist,) = into.glob("*.whl"), into.glob("*.tar.gz")
    faults = wrong_with(wheel, source)
    if faults:
        raise SystemExit("\n".join(f"{wheel.name}: {fault}" for fault in faults))
    return {"wheel": wheel, "sdist": sdist}


def wrong_with(wheel: Path, source: Path) -> list[str]:
    """Files of the package that the wheel lacks or should not hold, and what its metadata does not say."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith("/METADATA"))
    held = {name for name in names if ".dist-info/" not in name}
    wanted = {str(path.relative_to(source)) for path in (source / "shardpass").rglob("*") if path.is_file()}
    faults = [f"lacks {name}" for name in sorted(wanted - held)] + [f"holds {name}" for name in sorted(held - wanted)]
    lines = ("License-Expression: Apache-2.0", *(f"Provides-Extra: {extra}" for extra in EXTRAS))
    faults += [f"does not say {line!r}" for line in lines if line not in metadata.splitlines()]
    licenses = {name.rpartition("/")[2] for name in names if "/licenses/" in name}
    return faults + [f"lacks the file {name}" for name in sorted({"LICENSE", "NOTICE"} - licenses)]


def copied(to: Path) -> Path:
    """The tracked files, without the others of the working tree."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    return to


def environment(folder: Path) -> Path:
    """The Python of a new environment that holds nothing but pip."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder / "bin" / "python"


def try_installed(file: Path, folder: Path) -> None:
    """Installs ``file`` with what it needs, and uses it as a stranger would. Raises CalledProcessError."""
    python = environment(folder)
    call(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", file)
    empty = folder / "empty"
    empty.mkdir()
    for name in COMMANDS:
        call(python.with_name(f"shardpass-{name}"), "--version", cwd=empty)
    example = ROOT / "examples" / "mlp_train_step.mlir"
    call(python.with_name("shardpass-explain"), example, "--html", "page.html", cwd=empty)
    call(python, "-I", "-c", TRY, cwd=empty)


def call(program: Path, *arguments: object, cwd: Path | None = None) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    words = [str(word) for word in (program, *arguments)]
    done = subprocess.run(words, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{' '.join(words)[:200]}\n{done.stdout[-3000:]}{done.stderr[-3000:]}", file=sys.stderr)
        done.check_returncode()


if __name__ == "__main__":
    sys.exit(main())
