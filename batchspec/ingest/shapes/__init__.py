"""What the engines write about their drafts: one file for each shape, from a block of JSON to ``Acceptance``.

A reader gets the block that was found at its place and returns None where it does not speak of drafts. It states what
the block states, names what it derived or estimated, and leaves to ``identities.py`` whether the counts agree.
"""
