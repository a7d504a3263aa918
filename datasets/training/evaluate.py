"""Exact match of a model folder on held-out exercises, per category."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from datasets.training.quickstart import Request, load_expected
from datasets.training.tokenizer import CONTEXT


@dataclass(frozen=True)
class Outcome:
    """One answer next to the expected one."""

    request: Request
    answer: str

    @property
    def right(self) -> bool:
        """Tell whether the answer is the expected one, white space at the ends aside."""
        return self.answer.strip() == self.request.expected.strip()


def prompt_ids(tokenizer: PreTrainedTokenizerBase, request: Request) -> torch.Tensor:
    """Tokenise a chat with its template, or a completion prompt as it is."""
    if request.messages:
        text = tokenizer.apply_chat_template(request.messages, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    else:
        ids = tokenizer(request.prompt)["input_ids"]
    return torch.tensor([ids])


def answer(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, request: Request) -> str:
    """Generate greedily in float32 with the Hugging Face loop."""
    ids = prompt_ids(tokenizer, request)
    room = min(request.max_tokens, CONTEXT - ids.shape[1])
    output = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=room, do_sample=False)
    return str(tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True))


def evaluate(folder: Path, requests: list[Request]) -> list[Outcome]:
    """Answer all requests with one model."""
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    with torch.inference_mode():
        return [Outcome(request, answer(model.eval(), tokenizer, request)) for request in requests]


def report(outcomes: list[Outcome], show: str) -> None:
    """Print answers and the exact match per category."""
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.request.category].append(outcome)
        if show == "all" or (show == "wrong" and not outcome.right):
            print(json.dumps([outcome.request.category, outcome.request.prompt or outcome.request.messages]))
            print(f"  got:      {outcome.answer!r}\n  expected: {outcome.request.expected!r}")
    for category, members in sorted(groups.items()):
        print(f"{category:16} {sum(o.right for o in members):4} of {len(members)}")
    scored = [o for o in outcomes if o.request.category != "story"]
    print(f"{'without stories':16} {sum(o.right for o in scored):4} of {len(scored)}")


def main() -> None:
    """Read the command line and evaluate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", choices=("all", "wrong", "none"), default="wrong")
    parser.add_argument("--more", type=int, default=0, help="this many other held-out requests instead")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    report(evaluate(args.folder, load_expected(args.more)), args.show)


if __name__ == "__main__":
    main()
