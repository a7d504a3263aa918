"""Data sets of the project: the quickstart requests and the training recipe."""
