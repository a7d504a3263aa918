"""Turn a checkpoint into a model folder."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from datasets.training.model import build, export


def main() -> None:
    """Read the command line and write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("target", "draft"))
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    model = build(args.kind)
    model.load_state_dict(torch.load(args.checkpoint)["model"])
    export(model, args.tokenizer, args.out)


if __name__ == "__main__":
    main()
