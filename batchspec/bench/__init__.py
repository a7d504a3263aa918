"""Measuring: this machine, this model on it, and other engines beside it; always as ratios within one run."""
