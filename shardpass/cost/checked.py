"""Read the file of a user's machine and report each possible error.

``cost.machine.from_table`` builds a machine of a table that is right; here the table is looked at first, field by
field. ``about``, ``sources``, ``in_flight`` and ``beside`` may be left out.
"""

from __future__ import annotations

import datetime
import math
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shardpass.cost.collective import KINDS
from shardpass.cost.machine import MACHINES, Machine, from_table
from shardpass.diagnostics import Place, ShardpassError
from shardpass.diagnostics.arguments import shown
from shardpass.diagnostics.table_cost import BAD_MACHINE, UNREADABLE_MACHINE

LEAST, MOST = 1e-50, 1e50  # of a number, so that no sum of times grows beyond all floats
LARGEST = 1 << 20  # bytes of a file
NUMBER = f"a number above 0, from {LEAST:g} to {MOST:g}"
AT = re.compile(r"(?s)(.*) \(at line (\d+), column (\d+)\)")
FLOATS, FLAGS = ("runs", "elements", "places"), ("gathers_by_pieces", "cuts_by_slices", "floats_as_bits")
LINKS: Mapping[str, tuple[str, ...]] = {  # fields of each kind that must be there
    "switch": ("latency", "bandwidth"),
    "direct": ("devices", "latency", "bandwidth"),
    "torus": ("latency", "bandwidth", "shape", "wrap", "hop"),
}
MAY: Mapping[str, tuple[str, ...]] = {"switch": ("devices", "all_reduce"), "direct": (), "torus": ("devices",)}


def read_machine(path: str) -> Machine:
    """Read the machine that the file describes. Raises ShardpassError: SP902, SP903."""
    place = Place(path)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a module may name it: a pipe would be waited for
            raise _unreadable(place, "it is no regular file")
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise _unreadable(place, f"it has more than {LARGEST} bytes")
        return checked(tomllib.loads(data.decode()), path)
    except OSError as error:
        raise _unreadable(place, error.strerror or str(error)) from None
    except tomllib.TOMLDecodeError as error:
        match = AT.fullmatch(str(error))
        reason, where = (match[1], Place(path, int(match[2]), int(match[3]))) if match else (str(error), place)
        raise _unreadable(where, f"{reason[:1].lower()}{reason[1:]}") from None
    except RecursionError:
        raise _unreadable(place, "it nests too deep") from None
    except ValueError as error:  # not UTF-8, or a NUL in the path
        raise _unreadable(place, str(error)) from None


def _unreadable(place: Place, reason: str) -> ShardpassError:
    return UNREADABLE_MACHINE.error(place, reason=reason, known=", ".join(MACHINES))


def checked(data: Mapping[str, Any], path: str) -> Machine:
    """Return the machine of parsed TOML. Raises ShardpassError (SP903) at the first field that is wrong."""
    look = _Look(Place(path))
    name = data.get("name", Path(path).stem)
    if not isinstance(name, str) or not name.strip():
        raise look.wrong("name", name, "a name is a text", 'write name = "lab"')
    look.text(data, "about")
    look.number(data, "memory", infinite=True)
    look.number(data, "memory_bandwidth", infinite=True)
    if "in_flight" in data:
        look.whole(data, "in_flight", "", least=0)
    look.beside(data.get("beside", {}))
    look.number({"kernel": 0.0, **data}, "kernel", zero=True)
    look.number({"elements": math.inf, **data}, "elements", infinite=True)
    look.number({"product": 0.0, **data}, "product", zero=True)
    look.flops(data.get("flops"))
    look.links(data.get("links"))
    look.local(data.get("local", {}))
    sources = look.sources(data.get("sources", []))
    return from_table({**data, "name": name, "about": data.get("about", ""), "sources": sources})


class _Look:
    """Looks at fields; ``place`` is the file."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def wrong(self, field: str, value: object, reason: str, remedy: str) -> ShardpassError:
        given = "missing" if value is None else shown(value)
        return BAD_MACHINE.error(self.place, field=field, value=given, reason=reason, remedy=remedy)

    def text(self, data: Mapping[str, Any], field: str) -> None:
        if not isinstance(data.get(field, ""), str):
            raise self.wrong(field, data[field], "this is no text", f'write {field} = "..."')

    def number(
        self, data: Mapping[str, Any], field: str, at: str = "", *, zero: bool = False, infinite: bool = False
    ) -> None:
        value = data.get(field)
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
        if LEAST <= number <= MOST or (zero and number == 0) or (infinite and number == math.inf):
            return
        wanted = NUMBER + (", or 0" if zero else "") + (", or inf" if infinite else "")
        raise self.wrong(f"{at}{field}", value, f"{wanted} is needed", f"write {field} = 1e9, or what it is")

    def beside(self, table: object) -> None:
        if not isinstance(table, Mapping) or not table.keys() <= set(KINDS):
            remedy = "write [beside], and all_gather = 4096"
            raise self.wrong("beside", table, "bytes by kind of collective are needed", remedy)
        for kind in table:
            self.whole(table, kind, "beside.", least=0)

    def whole(self, data: Mapping[str, Any], field: str, at: str, least: int = 1) -> None:
        value = data.get(field)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 1 << 40:
            raise self.wrong(f"{at}{field}", value, f"a whole number from {least} up is needed", f"write {field} = 8")

    def table(self, value: object, field: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(field, value, "a table is needed", f"write [{field}] and its fields below")
        return value

    def flops(self, value: object) -> None:
        rates = self.table(value, "flops")
        if not rates:
            raise self.wrong("flops", None, "no element type has a rate", "write f32 = 1e12 below [flops]")
        for element in rates:
            if not re.fullmatch(r"(bf|f|i)\d{1,3}", element):
                known = "types are f64, f32, bf16, f16, f8, i8 and such"
                raise self.wrong(f"flops.{element}", rates[element], known, "write the rate of one of these")
            self.number(rates, element, "flops.", infinite=True)

    def links(self, value: object) -> None:
        if not isinstance(value, list) or not value or not all(isinstance(row, dict) for row in value):
            raise self.wrong("links", value, "one link at least is needed", "write [[links]], the innermost first")
        most = 0
        for i, row in enumerate(value):
            self._link(row, f"links[{i}].")
            last = i == len(value) - 1
            size = row.get("devices")
            if last != (size is None):
                why = "the last link joins all devices, and the others a block of so many"
                remedy = "leave devices out of the last link" if last else "write devices = 8"
                raise self.wrong(f"links[{i}].devices", size, why, remedy)
            if size is not None and size <= most:
                why = f"the link before joins {most}, and each must join more"
                raise self.wrong(f"links[{i}].devices", size, why, "write the links from the innermost outwards")
            most = size or most

    def _link(self, row: Mapping[str, Any], at: str) -> None:
        kind = row.get("kind")
        if not isinstance(kind, str) or kind not in LINKS:
            raise self.wrong(f"{at}kind", kind, f"kinds are {', '.join(LINKS)}", 'write kind = "switch"')
        needed = LINKS[kind]
        for field in row:
            if field not in (*needed, *MAY[kind], "kind"):
                known = f"a {kind} has {', '.join((*needed, *MAY[kind]))}"
                raise self.wrong(f"{at}{field}", row[field], known, "take the field away")
        self.number(row, "latency", at, zero=True)
        self.number(row, "bandwidth", at, infinite=True)
        if "all_reduce" in row:
            self.number(row, "all_reduce", at, infinite=True)
        if "devices" in row:
            self.whole(row, "devices", at)
        if kind == "torus":
            self.number(row, "hop", at, zero=True)
            self.whole(row, "wrap", at)
            shape = row.get("shape")
            if not isinstance(shape, list) or not shape:
                raise self.wrong(f"{at}shape", shape, "sizes of the torus are needed", "write shape = [4, 4, 4]")
            for j in range(len(shape)):
                self.whole({f"shape[{j}]": shape[j]}, f"shape[{j}]", at)

    def local(self, value: object) -> None:
        local = self.table(value, "local")
        for field in local:
            if field in FLOATS:
                self.number(local, field, "local.", infinite=True)
            elif field not in FLAGS:
                known = f"fields are {', '.join((*FLOATS, *FLAGS))}"
                raise self.wrong(f"local.{field}", local[field], known, "take the field away")
            elif not isinstance(local[field], bool):
                raise self.wrong(f"local.{field}", local[field], "true or false is needed", f"write {field} = true")

    def sources(self, value: object) -> list[dict[str, Any]]:
        if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
            raise self.wrong("sources", value, "a list of tables is needed", "write [[sources]]")
        for i, row in enumerate(value):
            if not isinstance(row.get("date"), datetime.date) or {"of", "where", "date"} != set(row):
                why = "a source has of, where and date"
                raise self.wrong(f"sources[{i}]", row, why, 'write of = "all", where = "...", date = 2026-11-25')
        return value
