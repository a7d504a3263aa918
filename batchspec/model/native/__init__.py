"""Our own forward pass for the common families of dense decoders, on the CPU: packed weights, fused element-wise work.

Whatever it does not know to the last key of ``config.json`` runs through transformers' own modules.
"""
