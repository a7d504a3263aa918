"""How often the draft would choose the token that the target chose, per category."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from datasets.training.evaluate import prompt_ids
from datasets.training.quickstart import load_expected


def main() -> None:
    """Answer greedily with the target, then let the draft guess each next token."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("draft", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    tokenizer = AutoTokenizer.from_pretrained(args.target, local_files_only=True)
    target, draft = (
        AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32).eval()
        for folder in (args.target, args.draft)
    )
    same: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for request in load_expected():
        ids = prompt_ids(tokenizer, request)
        with torch.inference_mode():
            output = target.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=request.max_tokens, do_sample=False
            )
            guesses = draft(output, use_cache=False).logits[0, ids.shape[1] - 1 : -1].argmax(-1)
        answer = output[0, ids.shape[1] :]
        for key in (request.category, "all"):
            same[key] += int((guesses == answer).sum())
            total[key] += len(answer)
    for key in sorted(total):
        print(f"{key:16} {same[key] / total[key]:.3f} of {total[key]} tokens")


if __name__ == "__main__":
    main()
