"""Fixtures of this directory."""

from .remote import place

__all__ = ["place"]
