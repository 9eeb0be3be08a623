"""The strings of MLIR bytecode: are they text?

jaxlib ends the process where MLIR complains about bytecode and its message quotes a string that is no UTF-8. All
strings of a file stand in one section, so whether that can happen is seen before MLIR reads the file. Such files exist:
an attribute may hold any bytes.

The format (mlir.llvm.org/docs/BytecodeFormat): ``ML\\xefR``, a version, the producer's name and a NUL; then sections,
each a byte with its number (the high bit: aligned), its length, and where it is aligned the alignment and padding up to
it. Section 0 has the strings: their count, the length of each, and the bytes. A number is as many bytes as its first
byte has zeros at the lower end, and one more; 0 stands for eight bytes that follow.
"""

from __future__ import annotations

STRINGS = 0


def all_text(data: bytes) -> bool:
    """Whether all strings of the bytecode ``data`` are UTF-8. False too where it is torn before them. O(strings)."""
    try:
        _, at = _number(data, 4)
        at = data.index(0, at) + 1
        while True:
            head = data[at]
            length, at = _number(data, at + 1)
            if head & 0x80:
                alignment, at = _number(data, at)
                at += -at % alignment
            if head & 0x7F == STRINGS:
                return _is_text(data[at : at + length])
            at += length
    except (IndexError, ValueError, ZeroDivisionError):
        return False


def _is_text(section: bytes) -> bool:
    """The strings stand at the end, each with a NUL."""
    count, at = _number(section, 0)
    for _ in range(count):
        _, at = _number(section, at)
    section[at:].decode("utf-8")  # UnicodeDecodeError is a ValueError
    return True


def _number(data: bytes, at: int) -> tuple[int, int]:
    first = data[at]
    if first == 0:
        return int.from_bytes(data[at + 1 : at + 9], "little"), at + 9
    count = (first & -first).bit_length()  # the zeros at the lower end, and one
    return int.from_bytes(data[at : at + count], "little") >> count, at + count
