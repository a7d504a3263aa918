"""Seeded recipe that makes the embedded target and draft models."""
