"""Everything that knows torch and transformers: loading, the gate, the paged cache, attention, the packed forward."""
