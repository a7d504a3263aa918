"""Regular expressions over a, b and c by derivatives: a second opinion on what may come next."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

__all__ = ["Node", "after", "can_end", "is_dead", "nodes", "spelled"]


@dataclass(frozen=True)
class Node:
    """``kind`` is one of nothing, end, letter, both (in this order), either, star."""

    kind: str
    letter: str = ""
    parts: tuple["Node", ...] = ()


NOTHING, END = Node("nothing"), Node("end")


def both(first: Node, second: Node) -> Node:
    if NOTHING in (first, second):
        return NOTHING
    return second if first == END else first if second == END else Node("both", parts=(first, second))


def either(first: Node, second: Node) -> Node:
    return (
        second if first == NOTHING else first if second in (NOTHING, first) else Node("either", parts=(first, second))
    )


def can_end(node: Node) -> bool:
    """Whether the empty text matches."""
    match node.kind:
        case "both":
            return all(can_end(part) for part in node.parts)
        case "either":
            return any(can_end(part) for part in node.parts)
        case kind:
            return kind in ("end", "star")


def after(node: Node, letter: str) -> Node:
    """What must follow the letter."""
    match node.kind:
        case "letter":
            return END if node.letter == letter else NOTHING
        case "both":
            first, second = node.parts
            rest = both(after(first, letter), second)
            return either(rest, after(second, letter)) if can_end(first) else rest
        case "either":
            return either(after(node.parts[0], letter), after(node.parts[1], letter))
        case "star":
            return both(after(node.parts[0], letter), node)
        case _:
            return NOTHING


def is_dead(node: Node) -> bool:
    """Whether nothing matches; the constructors keep ``nothing`` out of everything else."""
    return node == NOTHING


def spelled(node: Node) -> str:
    """The expression as text."""
    match node.kind:
        case "letter":
            return node.letter
        case "both":
            return "".join(spelled(part) for part in node.parts)
        case "either":
            return f"({spelled(node.parts[0])}|{spelled(node.parts[1])})"
        case "star":
            return f"({spelled(node.parts[0])})*"
        case _:
            return "()"


def _grown(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    pairs: st.SearchStrategy[Any] = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(lambda pair: both(*pair)),
        pairs.map(lambda pair: either(*pair)),
        inner.map(lambda part: Node("star", parts=(part,))),
    )


nodes = st.recursive(st.sampled_from([Node("letter", letter) for letter in "abc"] + [END]), _grown, max_leaves=8)
