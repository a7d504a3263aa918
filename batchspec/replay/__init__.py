"""What drafters would have been accepted on recorded outputs: ``batchspec replay``, exact, and without the target.

A deterministic draft is accepted as long as it equals the recorded tokens, be the output greedy, sampled and compared,
or rejection sampled; so the recorded tokens are all that is needed.

``logs``, ``reading`` and ``texts`` find the token ids in responses (``retokenise`` makes them), ``spool`` brings them
into the order of the input; ``lookups`` (n-grams), ``agreement`` (a draft model), both for every draft length at once,
or ``simulate`` (any drafter) step over them; ``tallies`` adds up by request, ``schedule`` says what it would take,
``ratios`` and ``summary`` what it comes to; ``replaying`` does all that, ``document`` and ``tables`` show it.
"""
