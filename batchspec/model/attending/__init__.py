"""What the attention kernel for the CPU is made of, from vectors up to tiles of rows."""
