"""What a suffix trie must say, computed by looking everywhere."""

from collections import Counter


def occurrences(texts: list[list[int]], context: list[int]) -> list[tuple[int, int]]:
    """Return (text, position behind it) of every occurrence of a context."""
    size = len(context)
    return [
        (number, end)
        for number, text in enumerate(texts)
        for end in range(size, len(text) + 1)
        if text[end - size : end] == context
    ]


def next_token(texts: list[list[int]], context: list[int], *, ignored: int) -> tuple[int, float] | None:
    """Return the token that follows a context most often, the least of several, and how often it does."""
    ends = occurrences(texts, context)
    followers = Counter(texts[number][end] for number, end in ends if end < len(texts[number]))
    if not followers:
        return None
    token = min(followers, key=lambda each: (-followers[each], each))
    return token, followers[token] / (len(ends) - ignored)


def walk(
    texts: list[list[int]], context: list[int], *, ignored: int, depth: int, limit: int, min_prob: float
) -> tuple[list[int], list[float]]:
    """Return the likeliest continuation, token by token, and how likely each token is."""
    tokens: list[int] = []
    probs: list[float] = []
    reached = 1.0
    while len(tokens) < limit:
        found = next_token(texts, context, ignored=ignored)
        if found is None:
            break
        token, prob = found
        ignored = 0
        reached *= prob
        if reached < min_prob:
            break
        tokens.append(token)
        probs.append(prob)
        context = [*context, token][-(depth - 1) :]
    return tokens, probs
