"""The compiled loops of the suffix trie; see ``trie.py`` for what the arrays mean.

A place in the trie is a node and an offset: behind a node that was reached once, its text goes on without nodes.
"""

from typing import Any

import numpy as np

from batchspec.compiled import compiled, inner

__all__ = ["append", "draft", "follow", "place_all"]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio, for Fibonacci hashing (Knuth, TAOCP 3, 6.4)
_SHIFT = np.uint64(29)


@inner
def _slot(keys: Any, parent: int, token: int) -> Any:
    """Return where a child's key stands, or the free place where it would."""
    key = (np.int64(parent) << np.int64(32)) | np.int64(token)
    mask = np.int64(len(keys) - 1)
    bits = np.uint64(key) * _MULTIPLIER
    place = np.int64((bits ^ (bits >> _SHIFT)) & np.uint64(mask))
    while keys[place] != key and keys[place] != -1:
        place = (place + 1) & mask
    return place


@inner
def _add(nodes: Any, keys: Any, values: Any, sizes: Any, parent: int, token: int, position: int) -> Any:
    """Add a child that was reached once, and whose text goes on at ``position``."""
    node = sizes[0]
    sizes[0] += 1
    nodes[node, 0], nodes[node, 1], nodes[node, 2], nodes[node, 3] = 1, -1, token, position
    place = _slot(keys, parent, token)
    keys[place] = (np.int64(parent) << np.int64(32)) | np.int64(token)
    values[place] = node
    _prefer(nodes, parent, node)
    return node


@inner
def _prefer(nodes: Any, parent: int, child: int) -> None:
    """Let the parent's likeliest child be the one just counted if no other is likelier; of as likely ones the least."""
    best = nodes[parent, 1]
    if best >= 0 and best != child:
        if nodes[child, 0] < nodes[best, 0]:
            return
        if nodes[child, 0] == nodes[best, 0] and nodes[child, 2] > nodes[best, 2]:
            return
    nodes[parent, 1] = child


@compiled()
def append(tokens: Any, text: Any, nodes: Any, keys: Any, values: Any, active: Any, sizes: Any, max_depth: int) -> None:
    """Append tokens to the text; every suffix of up to ``max_depth`` tokens is counted."""
    for token in tokens:
        text[sizes[1]] = token
        sizes[1] += 1
        deepest = sizes[2]
        sizes[2] = 0
        before = active[0]
        for depth in range(1, min(deepest + 1, max_depth) + 1):
            parent, before = before, active[depth]
            place = _slot(keys, parent, token)
            if keys[place] == -1:
                _add(nodes, keys, values, sizes, parent, token, sizes[1])
                continue
            node = values[place]
            nodes[node, 0] += 1
            _prefer(nodes, parent, node)
            position = nodes[node, 3]
            if nodes[node, 0] == 2 and depth < max_depth and text[position] >= 0:
                _add(nodes, keys, values, sizes, node, text[position], position + 1)
            active[depth] = node
            sizes[2] = depth


@compiled()
def place_all(old_keys: Any, old_values: Any, keys: Any, values: Any) -> None:
    """Enter every child of a table into a larger, empty one."""
    for place in range(len(old_keys)):
        key = old_keys[place]
        if key >= 0:
            found = _slot(keys, key >> np.int64(32), key & np.int64(0xFFFFFFFF))
            keys[found], values[found] = key, old_values[place]


@inner
def _step(text: Any, nodes: Any, keys: Any, values: Any, length: int, node: int, offset: int, token: int) -> Any:
    """Return the place behind a token, or (-1, 0) if the token never followed."""
    if node > 0 and nodes[node, 0] == 1:
        position = nodes[node, 3] + offset
        if position < length and text[position] == token:
            return node, offset + 1
        return -1, 0
    place = _slot(keys, node, token)
    if keys[place] == -1:
        return -1, 0
    return values[place], 0


@inner
def _descend(text: Any, nodes: Any, keys: Any, values: Any, length: int, tokens: Any) -> Any:
    """Return the place of a context, or (-1, 0) if it does not occur."""
    node, offset = 0, 0
    for token in tokens:
        node, offset = _step(text, nodes, keys, values, length, node, offset, token)
        if node < 0:
            break
    return node, offset


@compiled()
def follow(tokens: Any, text: Any, nodes: Any, keys: Any, values: Any, sizes: Any, places: Any, depth: int) -> int:
    """Let a reader's places, one for each length of its suffix, follow its next tokens; return the longest length."""
    for token in tokens:
        node, offset = 0, 0
        longest = 0
        for length in range(1, min(depth + 1, len(places) - 1) + 1):
            found = _step(text, nodes, keys, values, sizes[1], node, offset, token)
            if found[0] < 0:
                break
            node, offset = places[length, 0], places[length, 1]
            places[length, 0], places[length, 1] = found
            longest = length
        depth = longest
    return depth


@compiled()
def draft(
    context: Any,
    node: int,
    offset: int,
    own: int,
    text: Any,
    nodes: Any,
    keys: Any,
    values: Any,
    sizes: Any,
    min_prob: float,
    out: Any,
    probs: Any,
) -> int:
    """Walk from the place of a context to the likeliest next token, again and again; return the number of tokens.

    Args:
        context: the last tokens, as many as were matched, with room behind them for ``out``.
        node: where they lead.
        offset: tokens behind that node.
        own: occurrences of the context that are the reader's own present end, and so tell nothing.
        text: of the trie, like the next four.
        nodes: see there.
        keys: see there.
        values: see there.
        sizes: see there.
        min_prob: the walk ends before a token that is reached less likely than this.
        out: filled with token ids, at most as many as it holds.
        probs: filled with the probability that each follows, given that it is reached.
    """
    reached = 1.0
    longest = sizes[3] - 1
    matched = len(context) - len(out)
    for number in range(len(out)):
        if node > 0 and nodes[node, 0] == 1:
            position = nodes[node, 3] + offset
            if position >= sizes[1] or text[position] < 0:
                return number
            token, probability = text[position], 1.0
            offset += 1
        else:
            child = nodes[node, 1]
            if child < 0:
                return number
            token, probability = nodes[child, 2], nodes[child, 0] / (nodes[node, 0] - own)
            node = child
        own = 0
        reached *= probability
        if reached < min_prob:
            return number
        out[number], probs[number] = token, probability
        end = matched + number + 1
        context[end - 1] = token
        if end > longest:
            node, offset = _descend(text, nodes, keys, values, sizes[1], context[end - longest : end])
    return len(out)
