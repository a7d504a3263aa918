"""A server's responses against its counters: ``batchspec reconcile``.

``inputs`` finds the files, ``ledger`` adds up the responses, ``sheet`` lays both accounts side by side; ``gap``,
``window`` and ``verdict`` say whether a difference can be explained, and ``tables`` shows it. The counters are read by
``batchspec.reconcile.scrapes``, the responses by ``batchspec.ingest``.
"""
