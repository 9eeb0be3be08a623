"""SP62x and SP63x: what reports say of programs, and the files that belong to them."""

from __future__ import annotations

from shardpass.diagnostics.core import code

SENDS_MORE = code("SP625")
LINE_RECEIVES = code("SP626")
HINT_SAVES = code("SP627")
NO_SCHEDULE = code("SP628")
NO_PROFILE = code("SP629")
OTHER_PROFILE = code("SP630")
NOT_MEASURED = code("SP631")
