"""vLLM as a peer; runs in vLLM's environment and imports nothing else. See ``worker.py`` for what is said."""

import json
import os
import sys
import time
from collections import deque
from typing import Any


def main() -> None:
    """Load the model, say so, then answer one job a line."""
    answers = os.fdopen(os.dup(1), "w")  # standard output is for answers; whatever else is printed goes to stderr
    os.dup2(2, 1)
    settings = json.loads(sys.argv[1])
    engine = _load(settings)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for number, line in enumerate(sys.stdin):
        print(json.dumps(_serve(engine, json.loads(line), prefix=f"{number}-")), file=answers, flush=True)


def _load(settings: dict[str, Any]) -> Any:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = str(settings["kv_cache_gigabytes"])
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = f"0-{settings['num_threads'] - 1}"
    os.environ["OMP_NUM_THREADS"] = str(settings["num_threads"])
    from vllm import LLM

    speculative = None
    if settings["num_spec_tokens"]:
        speculative = {
            "method": "ngram",
            "num_speculative_tokens": settings["num_spec_tokens"],
            "prompt_lookup_min": settings["prompt_lookup_min"],
            "prompt_lookup_max": settings["prompt_lookup_max"],
        }
    model = LLM(
        settings["model"],
        dtype=settings["dtype"],
        max_model_len=settings["max_model_len"],
        max_num_seqs=settings["max_num_seqs"],
        enforce_eager=not settings["is_compiled"],
        enable_prefix_caching=False,  # jobs are repeated: a cache would hold the whole prompts
        speculative_config=speculative,
    )
    return model.llm_engine


def _serve(engine: Any, job: dict[str, Any], *, prefix: str) -> dict[str, Any]:
    """Keep ``num_running`` requests going until all are done."""
    from vllm import SamplingParams

    params = SamplingParams(temperature=0.0, max_tokens=job["max_tokens"], ignore_eos=True)
    waiting = deque(enumerate(job["prompts"]))
    num_running = num_tokens = 0
    started = time.perf_counter()
    while waiting or num_running:
        while waiting and num_running < job["num_running"]:
            index, token_ids = waiting.popleft()
            engine.add_request(f"{prefix}{index}", {"prompt_token_ids": token_ids}, params)
            num_running += 1
        for output in engine.step():
            if output.finished:
                num_tokens += len(output.outputs[0].token_ids)
                num_running -= 1
    return {"seconds": time.perf_counter() - started, "output_tokens": num_tokens}


if __name__ == "__main__":
    main()
