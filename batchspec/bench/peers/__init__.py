"""Other engines that are given the same job: one in this process, the others in processes of their environments."""

from batchspec.bench.peers.registry import Peers, open_peers

__all__ = ["Peers", "open_peers"]
