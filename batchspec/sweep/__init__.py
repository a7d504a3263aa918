"""Live runs over a grid of settings, with one model in memory: ``batchspec sweep``.

``keys`` and ``grid`` turn text into points, ``opening`` says whether they can run in a directory, ``running`` runs
them, ``outputs`` holds their answers beside each other; ``document`` is the comparison, ``tables`` shows it.
"""
