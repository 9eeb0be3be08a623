"""Benchmarks, fuzzers, proofs and the writers of generated pages. Run one as ``python -m tools.bench.compile``.

Their programs are small ones that stand for large ones, and are compared by bytes: without another word they are
decided for the machine ``ideal``, in the processes that tools start too.
"""

import os

os.environ.setdefault("SHARDPASS_MACHINE", "ideal")
