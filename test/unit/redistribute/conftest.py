"""Makes ``execution``, the helper beside this file, importable from the tests here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
