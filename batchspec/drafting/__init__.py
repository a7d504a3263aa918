"""Drafters behind one seam."""

from batchspec.drafting.config import SpeculativeConfig
from batchspec.drafting.forced import ForcedDrafter
from batchspec.drafting.interface import Drafter
from batchspec.drafting.ngram import NgramDrafter
from batchspec.drafting.none import NoDrafter
from batchspec.drafting.registry import make_drafter

__all__ = ["Drafter", "ForcedDrafter", "NgramDrafter", "NoDrafter", "SpeculativeConfig", "make_drafter"]
