"""Parse XLA's text by the grammar: every form, and the errors of malformed texts."""

from __future__ import annotations

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.model import Sharding
from shardpass.sharding.notations.attributes import attributes_of, sharding_of_attributes
from shardpass.sharding.notations.named import named_of
from shardpass.sharding.notations.source import Source
from shardpass.sharding.notations.syntax import parse_tree
from shardpass.sharding.notations.trees import Node, trees
from shardpass.sharding.tuples import TupleSharding

_AFTER = "write last_tile_dim_replicate before the brace: XLA does not take it after it"


def parsed(text: str, strict: bool) -> Sharding | TupleSharding:
    """Parse any text, as ``mhlo.parse_sharding``."""
    source, tree = Source(text, strict), parse_tree(text, "start")
    if tree.data == "several":
        (several,) = tree.children
        return TupleSharding(_leaf(source, child, after=False) for child in trees(several))
    leaf, *after = tree.children
    if after and not strict:
        token = repr(str(after[0]))
        raise source.fault(table.SYNTAX, after[0].start_pos, expected="the end", found=token, hint=_AFTER)
    return _leaf(source, leaf, after=bool(after))


def _leaf(source: Source, tree: Node, *, after: bool) -> Sharding:
    brace, *children = tree.children
    if children[0].data in ("named", "maximal_mesh"):
        if after:
            raise source.contradiction(brace.start_pos, "a named sharding has no tile dimensions to replicate")
        return named_of(source, children[0])
    return sharding_of_attributes(source, attributes_of(source, brace, children, replicate_last=after))
