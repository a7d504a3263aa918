"""Neighbours' files to batch lines, and responses to records that AIPerf reads: ``batchspec convert``.

One file for each neighbour (``spec_bench``, ``sharegpt``, ``plain_text``, ``aiperf``); ``asked`` is what the first
three have in common, ``converting`` runs any of them over a file, ``command`` checks what is asked for.
"""
