"""``metadata={..}``: fields for people, which no meaning depends on."""

from __future__ import annotations

from lark import Token
from lark import Tree as LarkTree

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.errors import fault

Tree = LarkTree[Token]

TEXT_FIELDS = frozenset(
    {"op_type", "op_name", "source_file", "deduplicated_name", "scheduling_name", "metadata_payload"}
)
NUMBER_FIELDS = frozenset({"source_line", "source_end_line", "source_column", "source_end_column", "stack_frame_id"})
NESTED_FIELDS = frozenset({"profile_type"})


def metadata_of(text: str, tree: Tree) -> tuple[str, ...]:
    """The entries of ``metadata``, one text for each element of a list of them.

    Raises:
        ShardingParseError: an unknown field, a field twice, or a value of the wrong kind.
    """
    if tree.data == "list_metadata":
        return tuple(_entries(text, child) for child in tree.children if isinstance(child, LarkTree))
    return (_entries(text, tree),)


def _entries(text: str, tree: Tree) -> str:
    seen: dict[str, str] = {}
    for entry in tree.children:
        assert isinstance(entry, LarkTree)
        key, *values = entry.children
        assert isinstance(key, Token)
        name, at = str(key)[:-1], key.start_pos or 0
        if name in seen:
            raise fault(
                table.CONTRADICTION, text, at, len(name), message=f"{name} is given twice", hint="leave one out"
            )
        seen[name] = _value(text, name, at, values)
    return " ".join(f"{name}={value}" for name, value in seen.items())


def _value(text: str, name: str, at: int, values: list[Token | Tree]) -> str:
    kinds = {"STRING": TEXT_FIELDS, "INT": NUMBER_FIELDS}
    first = values[0] if values else None
    kind = first.type if isinstance(first, Token) else ""
    allowed = kinds.get(kind, NESTED_FIELDS)
    if name not in allowed:
        known = sorted(TEXT_FIELDS | NUMBER_FIELDS | NESTED_FIELDS)
        what = "this kind of value" if name in known else "is unknown"
        message = f"metadata field {name} {'does not take ' + what if name in known else what}"
        raise fault(table.CONTRADICTION, text, at, len(name), message=message, hint=f"fields: {', '.join(known)}")
    if isinstance(first, Token):
        return str(first)
    return "{..}"
