"""Train the target or the draft: python -m datasets.training.train target --out DIR."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import LlamaForCausalLM

from datasets.training.batches import Batch, pool_batches
from datasets.training.model import build
from datasets.training.optim import make_optimizers, schedule


def weighted_loss(model: LlamaForCausalLM, batch: Batch, teacher: LlamaForCausalLM | None = None) -> Tensor:
    """Cross entropy with the text, or with what a teacher expects, weighted by token."""
    logits: Tensor = model(input_ids=batch.ids, use_cache=False).logits[:, :-1].flatten(0, 1)
    goal = batch.ids[:, 1:].reshape(-1)
    if teacher is not None:
        with torch.no_grad():
            goal = teacher(input_ids=batch.ids, use_cache=False).logits[:, :-1].flatten(0, 1).softmax(-1)
    losses = nn.functional.cross_entropy(logits, goal, reduction="none")
    weights = batch.weights[:, 1:].reshape(-1)
    return (losses * weights).sum() / weights.sum()


def longest_row(tokens: int) -> int:
    """Start with short examples: copying is learnt sooner from them."""
    return 128 if tokens < 720_000 else 256 if tokens < 1_800_000 else 672


def save(path: Path, model: nn.Module, optimizers: list[torch.optim.Optimizer], state: dict[str, Any]) -> None:
    """Write a checkpoint that training can go on from."""
    torch.save({"model": model.state_dict(), "optimizers": [o.state_dict() for o in optimizers], **state}, path)


def train(args: argparse.Namespace) -> None:
    """Run until the token budget is spent."""
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    tokenizer = Tokenizer.from_file(str(args.tokenizer / "tokenizer.json"))
    model = build(args.kind)
    optimizers = make_optimizers(model, args.lr)
    state: dict[str, Any] = {"pool": 0, "tokens": 0, "seconds": 0.0}
    if args.resume:
        stored = torch.load(args.resume)
        model.load_state_dict(stored["model"])
        for optimizer, values in zip(optimizers, stored["optimizers"], strict=True):
            optimizer.load_state_dict(values)
        state = {key: stored[key] for key in state}
    args.out.mkdir(parents=True, exist_ok=True)
    teacher: LlamaForCausalLM | None = None
    if args.teacher:
        teacher = LlamaForCausalLM.from_pretrained(args.teacher, local_files_only=True, dtype=torch.float32)
    print(f"{args.kind}: {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    while state["tokens"] < args.tokens and state["pool"] != args.stop_pool:
        run_pool(args, tokenizer, model, teacher, optimizers, state)
        save(args.out / "last.pt", model, optimizers, state)


def run_pool(
    args: argparse.Namespace,
    tokenizer: Tokenizer,
    model: LlamaForCausalLM,
    teacher: LlamaForCausalLM | None,
    optimizers: list[torch.optim.Optimizer],
    state: dict[str, Any],
) -> None:
    """Train on one pool of examples and print a line about it."""
    began, total, steps = time.time(), 0.0, 0
    longest = longest_row(state["tokens"])
    for batch in pool_batches(tokenizer, args.seed, state["pool"], args.batch_tokens, longest):
        scale = schedule(state["tokens"] / args.tokens)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["base_lr"] * scale
        loss = weighted_loss(model, batch, teacher)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        total, steps = total + loss.item(), steps + 1
        state["tokens"] += batch.tokens
    state["pool"] += 1
    state["seconds"] += time.time() - began
    print(
        f"pool {state['pool']} tokens {state['tokens']} seconds {state['seconds']:.0f} "
        f"loss {total / max(steps, 1):.4f} steps {steps}",
        flush=True,
    )


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("target", "draft"))
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=10_000_000)
    parser.add_argument("--stop-pool", type=int, default=-1, help="stop after this many pools")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--resume", type=Path, help="checkpoint to go on from")
    parser.add_argument("--teacher", type=Path, help="model folder to learn from instead of the text")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
