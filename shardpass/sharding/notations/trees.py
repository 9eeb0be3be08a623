"""Access to lark's parse trees, whose types lark does not state."""

from __future__ import annotations

from typing import Any, TypeAlias

Node: TypeAlias = Any  # lark's Token (a str with start_pos) or Tree; lark has no types


def trees(node: Node) -> list[Node]:
    """Return the children of a tree that are trees."""
    return [child for child in node.children if hasattr(child, "children")]


def pieces(node: Node) -> list[Node]:
    """Return the children of a tree that are tokens."""
    return [child for child in node.children if not hasattr(child, "children")]


def first_offset(node: Node) -> int:
    """Return the place where a tree begins; 0 for a tree without tokens."""
    while hasattr(node, "children"):
        if not node.children:
            return 0
        node = node.children[0]
    return int(node.start_pos)
