"""``metadata={..}`` of XLA's text: fields for people.

The fields are those of xla.OpMetadata that XLA's parser takes. One of them has a meaning: jaxlib 0.12 writes the
operation of a partial sum into the metadata. ``Sharding.text(metadata=True)`` prints metadata (``xla_text``).
"""

from __future__ import annotations

from shardpass.sharding.notations.source import Source
from shardpass.sharding.notations.trees import Node, pieces, trees

TEXT_FIELDS = frozenset(
    {"op_type", "op_name", "source_file", "deduplicated_name", "scheduling_name", "metadata_payload"}
)
NUMBER_FIELDS = frozenset({"source_line", "source_end_line", "source_column", "source_end_column", "stack_frame_id"})
NESTED_FIELDS = frozenset({"profile_type"})
FIELDS = TEXT_FIELDS | NUMBER_FIELDS | NESTED_FIELDS
_PROFILE_TYPES = range(4)
RULES = ("one_metadata", "no_metadata", "list_metadata")


def metadata_of(source: Source, tree: Node) -> tuple[str, ...]:
    """Read the entries of ``metadata``, one text per element of a list of entries.

    Raises:
        ShardingParseError: an unknown field, a field twice, or a value of the wrong kind.
    """
    if tree.data == "list_metadata":
        return tuple(_entries(source, child) for child in trees(tree))
    return (_entries(source, tree),)


def _entries(source: Source, tree: Node) -> str:
    seen: dict[str, str] = {}
    for entry in trees(tree):
        key, *values = entry.children
        name = str(key)[:-1]
        if name not in FIELDS:
            raise source.contradiction(
                key.start_pos, f"there is no metadata field {name}", f"fields: {', '.join(sorted(FIELDS))}", len(name)
            )
        if name in seen:
            raise source.contradiction(key.start_pos, f"{name} is given twice", "give it once", len(name))
        seen[name] = _value(source, name, key, values)
    return " ".join(f"{name}={value}" for name, value in seen.items())


def _value(source: Source, name: str, key: Node, values: list[Node]) -> str:
    (value,) = values
    token = "list" if hasattr(value, "children") else str(value.type)
    if name in TEXT_FIELDS and token == "STRING":
        source.string(value)
        return str(value)
    if name in NUMBER_FIELDS and token == "INT":
        if not -(1 << 31) <= source.one(value) < 1 << 31:
            raise source.contradiction(value.start_pos, f"{value} does not fit in 32 bits", "", len(value))
        return str(value)
    if name in NESTED_FIELDS and token == "list":
        numbers = [source.one(token) for token in pieces(value)]
        for number in numbers:
            if number not in _PROFILE_TYPES:
                raise source.contradiction(key.start_pos, f"there is no profile type {number}", "", len(name))
        return "{" + ",".join(map(str, numbers)) + "}"
    what = "a string" if name in TEXT_FIELDS else "an integer" if name in NUMBER_FIELDS else "a list {..}"
    raise source.contradiction(key.start_pos, f"metadata field {name} takes {what}", "", len(name))


def reduction_of(metadata: tuple[str, ...]) -> str:
    """Read the reduction of partial sums, which jaxlib 0.12 writes into the metadata: sum, max or min."""
    for entry in metadata:
        if 'op_type="sdy::reduction_op"' in entry:
            for name in ("max", "min"):
                if f'op_name="{name.upper()}"' in entry:
                    return name
    return "sum"
