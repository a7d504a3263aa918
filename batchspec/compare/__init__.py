"""Two runs of the same requests, paired by id: ``batchspec compare``.

``sides`` reads the numbers of a run, ``answers`` its texts and times, ``pairing`` brings two runs together;
``measures`` says what is compared, ``bootstrap`` how sure it is, ``texts`` where answers part; ``comparing`` is the
whole, ``tables`` and ``text_lines`` show it.
"""
