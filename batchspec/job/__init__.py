"""The main job: an input file in, a run directory out."""
