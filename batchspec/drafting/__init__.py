"""Drafters, and the table that names them: adding one is a file and a line here."""

from batchspec.drafting.config import SpeculativeConfig, make_drafter
from batchspec.drafting.forced import ForcedDrafter
from batchspec.drafting.interface import Drafter
from batchspec.drafting.ngram import NgramDrafter
from batchspec.drafting.none import NoDrafter

__all__ = ["Drafter", "ForcedDrafter", "NgramDrafter", "NoDrafter", "SpeculativeConfig", "make_drafter"]
