"""Packed rows on a device that is not the CPU: one copy a step, attention over pages, recorded steps."""
