"""XLA's ``mhlo.sharding`` text, V1, V2 and tuples: ``{devices=[4,2]<=[2,4]T(1,0)}``; V3 is in ``named``.

``parse_sharding`` reads every form; ``str(sharding)`` prints the canonical one. ``mhlo.lark`` is the grammar,
``syntax`` puts its errors in words, and ``attributes`` gives the attributes of one leaf their meaning. The form of the
format's own document, with ``last_tile_dim_replicate`` after the brace, is read in strict mode only, since XLA's parser
refuses it.

Cost: a text that was parsed before is one look-up. The commonest forms, a plain iota and a word alone, need no grammar,
and a process that meets no other never loads it.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.model import Sharding
from shardpass.sharding.notations.attributes import attributes_of, sharding_of_attributes
from shardpass.sharding.notations.named import named_of
from shardpass.sharding.notations.normal_form import normal_form
from shardpass.sharding.notations.source import Source
from shardpass.sharding.notations.tiles import LARGEST_LIST, Tiles
from shardpass.sharding.notations.trees import Node, trees
from shardpass.sharding.notes import Kind
from shardpass.sharding.tuples import TupleSharding

_LIST = r"([0-9]{1,9}(?:,[0-9]{1,9})*)"
_IOTA = re.compile(rf"\{{devices=\[{_LIST}\]<=\[{_LIST}\](?:T\({_LIST}\))?( last_tile_dim_replicate)?\}}", re.ASCII)
_WORD = re.compile(r"\{(replicated|manual|unknown)\}", re.ASCII)
_LONG = 1 << 14  # longer texts are cached in small number
_AFTER = "write last_tile_dim_replicate before the brace: XLA does not take it after it"


def parse_sharding(text: str, *, strict: bool = True) -> Sharding | TupleSharding:
    """The sharding of ``mhlo.sharding`` text, in any of XLA's forms.

    Args:
        text: such as ``{devices=[4,2]<=[2,4]T(1,0)}``.
        strict: refuse what XLA's parser lets through and then drops, misreads or crashes on, and take the
            ``{devices=..} last_tile_dim_replicate`` of the format's document. Not strict takes exactly what
            XLA's parser takes.

    Raises:
        ShardingParseError: with the place, an excerpt with a caret, what was expected, and a likely remedy.
    """
    return _parse(text, strict) if len(text) < _LONG else _parse_long(text, strict)


@lru_cache(maxsize=1 << 16)
def _parse(text: str, strict: bool) -> Sharding | TupleSharding:
    found = _plain(text)
    return _parsed(text, strict) if found is None else found


@lru_cache(maxsize=64)
def _parse_long(text: str, strict: bool) -> Sharding | TupleSharding:
    return _parsed(text, strict)


def _plain(text: str) -> Sharding | None:
    """The sharding of an iota or a word alone; None where the grammar must look at the text."""
    if (iota := _IOTA.fullmatch(text)) is not None:
        return _plain_iota(*iota.groups())
    word = _WORD.fullmatch(text)
    return None if word is None else Sharding(Kind(word[1]))


def _plain_iota(dims: str, iota: str, perm: str | None, replicate_last: str | None) -> Sharding | None:
    """The sharding of the numbers of an iota form; None where the grammar must look at the text."""
    counts, shape = tuple(map(int, dims.split(","))), tuple(map(int, iota.split(",")))
    order = tuple(map(int, perm.split(","))) if perm is not None else (0,)
    kinds = (Kind.REPLICATED,) if replicate_last else ()
    if (len(shape) == 1) != (perm is None) or sorted(order) != list(range(len(shape))):
        return None
    places = math.prod(counts)
    if not 0 < places == math.prod(shape) <= LARGEST_LIST:
        return None
    return normal_form(Tiles(counts, None, shape, order, kinds))


def _parsed(text: str, strict: bool) -> Sharding | TupleSharding:
    from shardpass.sharding.notations.syntax import parse_tree  # with it lark, which most programs never need

    source, tree = Source(text, strict), parse_tree(text, "start")
    if tree.data == "several":
        (several,) = tree.children
        return TupleSharding(_leaf(source, child, after=False) for child in trees(several))
    leaf, *after = tree.children
    if after and not strict:
        found = repr(str(after[0]))
        raise source.fault(table.SYNTAX, after[0].start_pos, expected="the end", found=found, hint=_AFTER)
    return _leaf(source, leaf, after=bool(after))


def _leaf(source: Source, tree: Node, *, after: bool) -> Sharding:
    brace, *children = tree.children
    if children[0].data in ("named", "maximal_mesh"):
        if after:
            raise source.contradiction(brace.start_pos, "a named sharding has no tile dimensions to replicate")
        return named_of(source, children[0])
    return sharding_of_attributes(source, attributes_of(source, brace, children, replicate_last=after))
