"""batchspec: offline batch inference with speculative decoding, exact acceptance metrics and reconciled totals."""

__version__ = "0.1.0"
