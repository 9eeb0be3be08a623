"""XLA's ``mhlo.sharding`` text, V1, V2 and tuples: ``{devices=[4,2]<=[2,4]T(1,0)}``; V3 is in ``named``.

``parse_mhlo`` reads every form; ``str(sharding)`` prints the canonical one. ``mhlo.lark`` is the grammar,
``by_grammar`` applies it, ``syntax`` words its errors, and ``attributes`` interprets the attributes of one leaf. The
form of the format's own document, with ``last_tile_dim_replicate`` after the brace, is read in strict mode only, since
XLA's parser refuses it.

Cost: a text that was parsed before is one look-up. The commonest forms, a plain iota and a word alone, need no grammar,
and a process that meets no other never loads it.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from shardpass.diagnostics.arguments import text_of, wrong_argument
from shardpass.sharding.model import Sharding
from shardpass.sharding.notations.normal_form import normal_form
from shardpass.sharding.notations.tiles import LARGEST_LIST, WrittenTiles
from shardpass.sharding.notes import Kind
from shardpass.sharding.tuples import TupleSharding

_LIST = r"([0-9]{1,9}(?:,[0-9]{1,9})*)"
_IOTA = re.compile(rf"\{{devices=\[{_LIST}\]<=\[{_LIST}\](?:T\({_LIST}\))?( last_tile_dim_replicate)?\}}", re.ASCII)
_WORD = re.compile(r"\{(replicated|manual|unknown)\}", re.ASCII)
_WANTED = "text such as '{devices=[4,2]<=[8]}', a NamedSharding, or a PartitionSpec and its mesh"
_LONG = 1 << 14  # longer texts are cached in small number


def parse_mhlo(text: str, *, strict: bool = True) -> Sharding | TupleSharding:
    """Parse ``mhlo.sharding`` text, in any of XLA's forms.

    Args:
        text: such as ``{devices=[4,2]<=[2,4]T(1,0)}``.
        strict: refuse what XLA's parser lets through and then drops, misreads or crashes on, and take the
            ``{devices=..} last_tile_dim_replicate`` of the format's document. Not strict takes exactly what
            XLA's parser takes.

    Raises:
        ArgumentError: SP140, of what is no text.
        ShardingParseError: with the place, an excerpt with a caret, what was expected, and a likely remedy.
    """
    if type(text) is not str or type(strict) is not bool:
        text = text_of("parse_sharding", "text", text, _WANTED)
        if type(strict) is not bool:
            raise wrong_argument("parse_sharding", "strict", strict, "True or False")
    return _parse(text, strict) if len(text) < _LONG else _parse_long(text, strict)


@lru_cache(maxsize=1 << 16)
def _parse(text: str, strict: bool) -> Sharding | TupleSharding:
    sharding = _plain(text)
    return _by_grammar(text, strict) if sharding is None else sharding


@lru_cache(maxsize=64)
def _parse_long(text: str, strict: bool) -> Sharding | TupleSharding:
    return _by_grammar(text, strict)


def _plain(text: str) -> Sharding | None:
    """Parse an iota or a single word without the grammar; None if the text needs the grammar."""
    if (iota := _IOTA.fullmatch(text)) is not None:
        return _plain_iota(*iota.groups())
    word = _WORD.fullmatch(text)
    return None if word is None else Sharding(Kind(word[1]))


def _plain_iota(dims: str, iota: str, perm: str | None, replicate_last: str | None) -> Sharding | None:
    """Make the sharding of the numbers of an iota; None if the text needs the grammar."""
    counts, shape = tuple(map(int, dims.split(","))), tuple(map(int, iota.split(",")))
    order = tuple(map(int, perm.split(","))) if perm is not None else (0,)
    kinds = (Kind.REPLICATED,) if replicate_last else ()
    if (len(shape) == 1) != (perm is None) or sorted(order) != list(range(len(shape))):
        return None
    places = math.prod(counts)
    if not 0 < places == math.prod(shape) <= LARGEST_LIST:
        return None
    return normal_form(WrittenTiles(counts, None, shape, order, kinds))


def _by_grammar(text: str, strict: bool) -> Sharding | TupleSharding:
    from shardpass.sharding.notations.by_grammar import parsed  # with it lark, which most programs never need

    return parsed(text, strict)
