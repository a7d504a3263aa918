"""Two independent accounts of one run, compared integer by integer.

The per-request recorders give one account, the Prometheus counters the other. What the recorders counted for requests
that carry no metrics of their own is named by cause, so that the sum of the first account must equal the second.
``scrapes`` reads the second account where it is a server's.
"""

from batchspec.reconcile.comparison import Reconciliation, Row, reconcile
from batchspec.reconcile.sums import AcceptanceSums

__all__ = ["AcceptanceSums", "Reconciliation", "Row", "reconcile"]
