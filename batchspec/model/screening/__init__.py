"""Tokens chosen without all logits, through products of small integers whose error is known."""

from batchspec.model.screening.runner import ScreeningRunner
from batchspec.model.screening.screen import Screen

__all__ = ["Screen", "ScreeningRunner"]
