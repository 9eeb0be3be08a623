"""Lifetimes of a program's buffers, by the rules of XLA's buffer assignment as far as they depend only on the program.

1. Fusion. A step whose result can be computed in the loops of its readers (``cost.fusion``) is fused into all of them,
   if each can compute the elements that it uses. Its result then has no buffer, and its operands stay alive until the
   readers run. If there are several readers, each recomputes an elementwise value on GPUs (``Client.recomputes``). On
   CPUs each recomputes a value that is not expensive, if the step reads at most one array as large as its result or if
   no reader waits for a longer chain of written values than the step does. An expensive value is not recomputed for
   each element of a broadcast. A value computed from constants alone is recomputed in each loop or branch that uses it.
2. Aliases. The result of a reshape, a barrier or a constraint shares the buffer of its operand, and so does a value
   that a loop passes on unchanged. An in-place update or an elementwise step writes into an operand that dies there.
3. Loops. Each carried value has one buffer: that of the initial value, if it dies at the loop. The body writes the next
   value into the same buffer if the old value is dead by then, or if its last reader computes the next value element by
   element. For a carried value ``h``, ``h + w`` is computed in place, while ``h @ w`` and a transpose of ``h`` get a
   buffer of their own and are copied. Carried values that swap places are copied first if the old one is still read.
4. Order. With ``Client.late``, steps run in the order of the program, except that a step which allocates at least as
   much as it frees runs right before its first reader, as XLA's schedulers save memory. Otherwise each step runs as
   soon as its operands exist, as in XLA's CPU client: all gathers of weights then run first, and stay alive until used.
5. Limits of fusion. A reduction of a large array ends its fusion (``LARGE``), and no fusion crosses a barrier. XLA's
   CPU client computes the operand of a long reduction of one array separately (``Client.longest``).

State: the moments, in the order in which they run, where those of inner blocks precede the moment of their step; and a
``Life`` for each buffer, from a first to a last moment. A buffer used in an inner block lives until that block ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shardpass.cost.blocks import CPU, END, OTHERS, Block, Buffer, Client, Step
from shardpass.cost.fusion import Operands, Result, Row, fusion_of

ALIGNED = 64  # bytes
MOST_JOINED = 15
LARGE = 4096 * 4  # bytes: 4096 numbers of four
WHILE, REDUCE = "stablehlo.while", "stablehlo.reduce"
NOTHING = -1  # in the place of a buffer


@dataclass(slots=True, eq=False)
class Life:
    """The time during which a buffer occupies memory, named after the first value stored in the buffer."""

    buffer: Buffer
    bytes: int
    first: int
    last: int


@dataclass(slots=True, eq=False)
class _Moment:
    """A step of a block, or several steps fused into a kernel. ``straight``: buffers read element by element;
    ``moved``: buffers read in another order.

    ``spread``: buffers each of whose elements is used for many results; ``depth``: the length of the longest chain of
    values written before this step; ``joined``: the number of fused steps.
    """

    step: Step
    row: Row
    makes: list[Buffer]
    reads: list[Buffer]
    straight: set[Buffer]
    moved: set[Buffer]
    spread: set[Buffer]
    depth: int = 0
    joined: int = 1

    @classmethod
    def of(cls, step: Step, makes: list[Buffer], reads: list[Buffer]) -> _Moment:
        row, read = fusion_of(step.name), set(reads)
        straight, spread = (read if holds else set() for holds in (row.straight, row.spreads))
        return cls(step, row, makes, list(dict.fromkeys(reads)), set(straight), read - straight, set(spread))

    def reads_straight(self, buffer: Buffer) -> bool:
        return buffer in self.straight and buffer not in self.moved

    def makes_inside(self, buffer: Buffer) -> bool:
        """Return whether the op that makes ``buffer``, which the step reads, can be fused into the step's loop."""
        in_place = self.row.in_place and self.reads[0] == buffer
        return self.row.operands is Operands.FUSED and not in_place


class Lifetimes:
    """The lives of a program's buffers.

    Attributes:
        ops, scratch: of each moment.
        arguments, results: of main, which live throughout; ``lent``: results in the buffers of donated arguments.
        others: all other lives.
    """

    def __init__(self, body: Block, sizes: Sequence[int], client: Client, donated: Mapping[Buffer, int]) -> None:
        self.sizes, self.client = sizes, client
        self.ops: list[int] = []
        self.scratch: list[int] = []
        self._lives: list[Life] = []
        self._of: dict[Buffer, Life] = {}
        self._root: dict[Buffer, Buffer] = {}
        self._kept: set[Buffer] = set()  # that pass a barrier
        self._constant: set[Buffer] = set()  # constants, and what is made of them alone
        self._makers: dict[Buffer, _Moment] = {}
        self.arguments = [self._begin(buffer, 0) for buffer in dict.fromkeys(body.arguments)]
        for life in self.arguments:
            life.last = -1  # until one reads it
        self._block(body, ())
        fixed = {id(life) for life in self.arguments}
        self.results: list[Life] = []
        for buffer in map(self._rooted, body.returned):
            made = self._of.get(buffer)
            is_copy = made is None or id(made) in fixed  # of an argument, of a constant, of another result
            life = self._life(buffer, len(self.ops) - 1) if made is None or is_copy else made
            life.last = len(self.ops) - 1
            self.results.append(life)
            fixed.add(id(life))
        self.lent = self._donate(donated)
        self.others = [life for life in self._lives if id(life) not in fixed]

    def _donate(self, donated: Mapping[Buffer, int]) -> list[Life]:
        """Put results into the buffers of donated arguments; a result computed too early is copied there at the end."""
        lent = []
        for argument, index in donated.items():
            given, result = self._of[argument], self.results[index]
            if result.bytes != given.bytes:
                continue
            lent.append(result)
            if result.buffer != argument and not self._may_overwrite(result, given):
                self._lives.append(Life(result.buffer, result.bytes, result.first, result.last))
            result.first = 0  # it lends nothing
        return lent

    def _may_overwrite(self, result: Life, given: Life) -> bool:
        if result.first != given.last:
            return result.first > given.last
        maker = self._makers.get(result.buffer)
        return maker is not None and given.buffer in self._to_overwrite(maker, result.buffer)

    def _begin(self, buffer: Buffer, moment: int) -> Life:
        life = self._of[buffer] = self._life(buffer, moment)
        self._lives.append(life)
        return life

    def _life(self, buffer: Buffer, moment: int) -> Life:
        return Life(buffer, -(-self.sizes[buffer] // ALIGNED) * ALIGNED, moment, moment)

    def _rooted(self, buffer: Buffer) -> Buffer:
        return self._root.get(buffer, buffer)

    # ---------------------------------------------------------------- one block

    def _block(self, block: Block, carried: Sequence[Life | None]) -> None:
        """Add the lives of a block's buffers. ``carried``: the buffers into which the block's results go; the
        arguments of a loop's body are in them too.
        """
        moments = self._fuse(self._moments(block))
        moments = self._put_off(moments) if self.client.late else _first_come(moments)
        last = {buffer: place for place, one in enumerate(moments) for buffer in (*one.makes, *one.reads)}
        made_at = {buffer: place for place, one in enumerate(moments) for buffer in one.makes}
        copied = self._carry(block, carried, moments)
        for place, one in enumerate(moments):
            begun = len(self.ops)
            self._place(one, [b for b in one.reads if last[b] == place and b in made_at], begun)
            self._inside(one.step)
            now = len(self.ops)
            self.ops.append(one.step.op)
            self.scratch.append(one.step.scratch)
            for buffer in (*one.makes, *one.reads):
                if buffer in self._of:
                    self._of[buffer].last = max(self._of[buffer].last, now)
        self._lives += [self._life(buffer, len(self.ops) - 1) for buffer in copied]

    def _carry(self, block: Block, carried: Sequence[Life | None], moments: Sequence[_Moment]) -> list[Buffer]:
        """Store the results of ``block`` in the buffers ``carried`` where the old value is not read after the new one
        is computed. Returns the arguments that change places, which are copied if the old value is read at all.
        """
        body, copied = moments[:-1], []
        made_at = {buffer: place for place, one in enumerate(body) for buffer in one.makes}
        read_at = {buffer: place for place, one in enumerate(body) for buffer in one.reads}
        returned = [self._rooted(buffer) for buffer in block.returned]
        for index, (life, buffer) in enumerate(zip(carried, returned, strict=False)):
            if life is None:
                continue
            old = block.arguments[index] if block.arguments else NOTHING
            made, read = made_at.get(buffer), read_at.get(old, -1)
            if made is None:
                if old != buffer in block.arguments and (read >= 0 or old in returned):
                    copied.append(buffer)
            elif buffer not in self._of and (
                read < made or (read == made and old in self._to_overwrite(body[made], buffer))
            ):
                self._of[buffer] = life
        return copied

    def _inside(self, step: Step) -> None:
        lives = [self._of.get(self._rooted(buffer)) for buffer in step.makes]
        is_loop = step.name == WHILE
        for block in step.blocks:
            for argument, life in zip(block.arguments, lives, strict=False):
                if life is not None:
                    self._of[argument] = life
            self._block(block, () if is_loop and block is not step.blocks[-1] else lives)

    def _put_off(self, moments: list[_Moment]) -> list[_Moment]:
        """Order ``moments``: delay each step that does not free memory until right before its first reader."""
        readers: dict[Buffer, list[_Moment]] = {}
        for one in moments:
            for buffer in one.reads:
                readers.setdefault(buffer, []).append(one)
        made = {buffer for one in moments for buffer in one.makes}
        key: dict[_Moment, tuple[int, int]] = {}
        for place in reversed(range(len(moments))):
            one = moments[place]
            dying = [buffer for buffer in one.reads if buffer in made and readers[buffer][-1] is one]
            first = min((key[reader] for buffer in one.makes for reader in readers.get(buffer, ())), default=None)
            puts_off = sum(map(self.sizes.__getitem__, one.makes)) >= sum(map(self.sizes.__getitem__, dying))
            # what is put off to one place stands there in the order of the program
            key[one] = (place, 1) if first is None or not puts_off else (first[0], place - len(moments))
        return sorted(moments, key=key.__getitem__)

    def _place(self, one: _Moment, dying: list[Buffer], moment: int) -> None:
        """Assign the results of ``one`` the buffer of an operand that is not read again, or a new buffer."""
        for buffer in one.makes:
            if buffer in self._of:
                continue
            overwritten = next((old for old in self._to_overwrite(one, buffer) if old in dying), None)
            if overwritten is None:
                self._begin(buffer, moment)
                self._makers[buffer] = one
            else:
                dying.remove(overwritten)
                self._of[buffer] = self._of[overwritten]

    def _to_overwrite(self, one: _Moment, buffer: Buffer) -> Iterable[Buffer]:
        """List the operands of ``one`` that ``buffer`` may overwrite."""
        if one.step.name == WHILE:
            return (self._rooted(one.step.reads[one.step.makes.index(buffer)]),)
        if one.row.in_place:
            return one.reads[:1]
        return (old for old in one.reads if one.reads_straight(old) and self.sizes[old] == self.sizes[buffer])

    # ---------------------------------------------------------------- what is written

    def _moments(self, block: Block) -> list[_Moment]:
        """Return the steps of a block, without the steps whose results share their operands' buffers."""
        out = []
        for step in block.steps:
            outside = [buffer for inner in step.blocks for buffer in inner.outside()]
            reads = [self._rooted(buffer) for buffer in (*step.reads, *outside)]
            makes = list(step.makes)
            if step.name.endswith(".constant"):  # a part of the program, not of its memory
                self._constant.update(makes)
                continue
            if self._passes_on(step) and len(makes) == len(reads):
                self._root.update(zip(makes, reads, strict=True))
                if fusion_of(step.name).operands is Operands.PASSED:
                    self._kept.update(reads)
                continue
            if step.name == WHILE:
                body = step.blocks[-1]
                for made, read, argument, returned in zip(makes, reads, body.arguments, body.returned, strict=False):
                    if argument == returned:
                        self._root[made] = self._root[argument] = read
                makes = [made for made in makes if made not in self._root]
            out.append(_Moment.of(step, makes, reads))
        out.append(_Moment.of(Step(END, "", (), block.returned), [], list(map(self._rooted, block.returned))))
        return out

    def _passes_on(self, step: Step) -> bool:
        """Return whether the result of ``step`` shares the buffer of its operand; a broadcast that repeats no element
        is a reshape.
        """
        row = fusion_of(step.name)
        if row.spreads:
            return self.sizes[step.makes[0]] == self.sizes[step.reads[0]]
        return row.result is Result.VIEW

    def _fuse(self, moments: list[_Moment]) -> list[_Moment]:
        """Return the moments that remain after values inside of fusions lose their buffers."""
        readers: dict[Buffer, list[_Moment]] = {}
        depth: dict[Buffer, int] = {}
        for one in moments:
            one.depth = max((depth.get(buffer, 0) for buffer in one.reads), default=0)
            if one.row.fuses and one.row.result is not Result.ONCE and self._constant.issuperset(one.reads):
                self._constant.update(one.makes)
            for buffer in one.makes:
                depth[buffer] = one.depth + (not one.row.fuses)
            for buffer in one.reads:
                readers.setdefault(buffer, []).append(one)
        gone: set[int] = set()
        for one in reversed(moments):
            if len(one.makes) != 1 or not one.row.fuses:
                continue
            made = one.makes[0]
            into = readers.get(made, [])
            if self._is_written(one, made, into):
                continue
            gone.add(id(one))
            for buffer in one.reads:
                readers[buffer] = [reader for reader in readers[buffer] if reader is not one]
            for reader in into:
                for buffer in _join(one, made, reader):
                    readers[buffer].append(reader)
        return [one for one in moments if id(one) not in gone]

    def _is_written(self, one: _Moment, made: Buffer, readers: Sequence[_Moment]) -> bool:
        """Return whether ``made`` has a buffer."""
        if made in self._kept or self._is_large(one) or any(map(self._is_long, readers)):
            return True
        if not all(reader.makes_inside(made) or self._sinks(made, reader) for reader in readers):
            return True
        if self.client.recomputes and one.row.straight:
            return False
        if one.row.result is Result.ONCE and (len(readers) > 1 or any(made in reader.spread for reader in readers)):
            return True
        return len(readers) > 1 and not self.client.recomputes and not self._again(one, made, readers)

    def _sinks(self, made: Buffer, reader: _Moment) -> bool:
        """Return whether the blocks of ``reader``, which are given no value, make ``made`` of constants (constant
        sinking).
        """
        step = reader.step
        given = step.reads[: len(step.makes)] if step.name == WHILE else step.reads[:1]
        return bool(step.blocks) and made in self._constant and made not in map(self._rooted, given)

    def _is_large(self, one: _Moment) -> bool:
        """Return whether the reduction ``one`` is a library call on XLA:CPU, and ends a fusion on XLA:GPU."""
        return one.step.name == REDUCE and self.sizes[one.step.reads[0]] >= LARGE

    def _is_long(self, one: _Moment) -> bool:
        """Return whether the client splits the reduction into stages because it reduces many elements to one; the
        first stage reads from memory.
        """
        longest = self.client.longest
        if longest is None or one.step.name != REDUCE or len(one.step.reads) > 2:
            return False
        return self.sizes[one.makes[0]] * longest < self.sizes[one.step.reads[0]]

    def _again(self, one: _Moment, made: Buffer, readers: Sequence[_Moment]) -> bool:
        """Return whether each of several readers may compute ``made`` for itself."""
        if any(reader.joined > MOST_JOINED and not reader.reads_straight(made) for reader in readers):
            return False
        sizes, size = [self.sizes[buffer] for buffer in one.reads], self.sizes[made]
        if sum(each >= size for each in sizes) < 2 or sum(sizes) <= size:
            return True
        return all(reader.depth == one.depth for reader in readers)


def _join(one: _Moment, made: Buffer, reader: _Moment) -> list[Buffer]:
    """Fuse ``one`` into ``reader`` and return the buffers that ``reader`` did not read before the fusion."""
    through = reader.reads_straight(made)
    reader.reads.remove(made)
    reader.joined += 1
    fresh = [buffer for buffer in one.reads if buffer not in reader.straight and buffer not in reader.moved]
    for buffer in one.reads:
        (reader.straight if through and buffer in one.straight else reader.moved).add(buffer)
    reader.spread.update(one.reads if made in reader.spread else one.spread)
    reader.reads += fresh
    return fresh


def _first_come(moments: list[_Moment]) -> list[_Moment]:
    """Order ``moments``, each as soon as its operands are available; the end of the block stays last."""
    body = moments[:-1]
    made = {buffer for one in body for buffer in one.makes}
    readers: dict[Buffer, list[int]] = {}
    missing = [len(one.reads) for one in body]
    for place, one in enumerate(body):
        for buffer in one.reads:
            readers.setdefault(buffer, []).append(place)
    ready = deque(place for place, count in enumerate(missing) if not count)
    order: list[_Moment] = []

    def there(buffer: Buffer) -> None:
        for place in readers.get(buffer, ()):
            missing[place] -= 1
            if not missing[place]:
                ready.append(place)

    for buffer in readers:
        if buffer not in made:
            there(buffer)
    while ready:
        one = body[ready.popleft()]
        order.append(one)
        for buffer in one.makes:
            there(buffer)
    return [*order, moments[-1]]


__all__ = ["ALIGNED", "CPU", "END", "OTHERS", "Block", "Buffer", "Client", "Life", "Lifetimes", "Step"]
