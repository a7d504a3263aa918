"""Seeded word pools, split for good into a training part and a held-out part.

A word belongs to the held-out part when a checksum of its letters says so. A
quickstart prompt draws its names and phrases from the held-out part only, so no
training prompt, however long the stream, can contain them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from random import Random
from typing import Literal

from datasets.training import words as w

Split = Literal["train", "heldout"]
HELD_OUT_SHARE = 8


def is_held_out(word: str) -> bool:
    """Tell whether a word or phrase is kept out of training."""
    return zlib.crc32(word.lower().encode()) % HELD_OUT_SHARE == 0


def _syllable(rng: Random) -> str:
    coda = rng.choice(w.CODAS) if rng.random() < 0.35 else ""
    return rng.choice(w.ONSETS) + rng.choice(w.VOWELS) + coda


class Pools:
    """Draws names and phrases of one split from a random generator."""

    def __init__(self, rng: Random, split: Split = "train") -> None:
        self.rng = rng
        self.split = split
        self.drawn: set[str] = set()

    def _draw(self, make: Callable[[Random], str]) -> str:
        while True:
            word = make(self.rng)
            if is_held_out(word) == (self.split == "heldout") and word not in self.drawn:
                self.drawn.add(word)
                return word

    def keep(self, make: Callable[[Random], str]) -> str:
        """Draw anything that belongs to this split and was not drawn before."""
        return self._draw(make)

    def person(self) -> str:
        """Return a first name, real or made up."""

        def make(rng: Random) -> str:
            if rng.random() < 0.35:
                return rng.choice(w.FIRST_NAMES)
            body = "".join(_syllable(rng) for _ in range(rng.choice((1, 1, 2))))
            tail = rng.choice(w.NAME_ENDS)
            return (body.rstrip("aeiou") + tail).capitalize()

        return self._draw(make)

    def surname(self) -> str:
        """Return a made-up family name."""
        ends = ("son", "man", "er", "ez", "ski", "ov", "ley", "etti", "sen", "moto", "well", "")
        return self._draw(lambda rng: (_syllable(rng) + _syllable(rng) + rng.choice(ends)).capitalize())

    def city(self) -> str:
        """Return a city, real or made up."""

        def make(rng: Random) -> str:
            if rng.random() < 0.25:
                return rng.choice(w.REAL_CITIES)
            return (_syllable(rng) + rng.choice(w.CITY_ENDS)).capitalize()

        return self._draw(make)

    def company(self) -> str:
        """Return a made-up company name of one or two words."""

        def make(rng: Random) -> str:
            stem = (_syllable(rng) + _syllable(rng)).capitalize()
            return stem if rng.random() < 0.3 else f"{stem} {rng.choice(w.COMPANY_ENDS)}"

        return self._draw(make)

    def role(self) -> str:
        """Return a job, often with a level before it."""

        def make(rng: Random) -> str:
            role = rng.choice(w.ROLES)
            return role if rng.random() < 0.5 else f"{rng.choice(w.ROLE_LEVELS)} {role}"

        return self._draw(make)

    def item(self) -> str:
        """Return a thing with a colour or a material."""
        kinds = w.COLOURS + w.MATERIALS
        return self._draw(lambda rng: f"{rng.choice(kinds)} {rng.choice(w.THINGS)}")

    def code(self) -> str:
        """Return an identifier such as KX-4821."""
        letters = "ABCDEFGHJKLMNPQRSTUVWXYZ"
        return self._draw(lambda rng: "".join(rng.choices(letters, k=2)) + f"-{rng.randrange(100, 9999)}")

    def ident(self) -> str:
        """Return a Python variable name."""

        def make(rng: Random) -> str:
            word = rng.choice(w.IDENTS)
            roll = rng.random()
            if roll < 0.3:
                return word
            if roll < 0.7:
                return f"{rng.choice(w.IDENT_FIRST)}_{word}"
            return f"{word}_{rng.choice(w.IDENTS)}"

        return self._draw(make)

    def pick(self, options: tuple[str, ...]) -> str:
        """Return one entry of a closed list, which both splits share."""
        return self.rng.choice(options)
