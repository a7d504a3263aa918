"""Muon for the hidden matrices, AdamW for the rest, one schedule for both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def _orthogonal(update: Tensor, steps: int = 5) -> Tensor:
    """Newton-Schulz iteration: move all singular values towards one."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x: Tensor = update / (update.norm() + 1e-7)
    tall = x.size(0) > x.size(1)
    x = x.T if tall else x
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    """Momentum, then orthogonalised updates; in float32, unlike torch.optim.Muon."""

    def __init__(self, params: list[nn.Parameter], lr: float, momentum: float, decay: float) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Update every matrix once."""
        if closure is not None:
            raise ValueError("Muon takes no closure")
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                state = self.state[param]
                if not state:
                    state["momentum"] = torch.zeros_like(param)
                buffer: Tensor = state["momentum"]
                buffer.lerp_(param.grad, 1 - group["momentum"])
                update = _orthogonal(param.grad.lerp(buffer, group["momentum"]))
                param.mul_(1 - group["lr"] * group["decay"])
                param.add_(update, alpha=-group["lr"] * max(1.0, param.size(0) / param.size(1)) ** 0.5)


def make_optimizers(model: nn.Module, lr: float) -> list[torch.optim.Optimizer]:
    """Return Muon for the layer matrices and AdamW for embeddings and norms."""
    hidden = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    rest = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    optimizers: list[torch.optim.Optimizer] = [
        Muon(hidden, lr=lr, momentum=0.95, decay=0.1),
        torch.optim.AdamW(rest, lr=lr * 0.15, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["base_lr"] = group["lr"]
    return optimizers


def schedule(progress: float, warm: float = 0.01, cool: float = 0.35) -> float:
    """Warm up, hold, then go down to nearly zero."""
    if progress < warm:
        return max(progress / warm, 0.02)
    return min(1.0, max((1.0 - progress) / cool, 0.01))
