"""More than one machine: shards and their merge, workers of a Ray cluster, a stage for Ray Data."""
