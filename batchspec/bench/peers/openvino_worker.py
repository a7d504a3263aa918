"""OpenVINO GenAI as a peer; runs in its environment and imports nothing else. See ``worker.py`` for what is said.

The model is a directory that ``optimum-cli export openvino`` made, named with ``--peer-model``.
"""

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
    pipeline = _load(settings)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    first_id = 0
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps(_serve(pipeline, settings, job, first_id=first_id)), file=answers, flush=True)
        first_id += len(job["prompts"])


def _load(settings: dict[str, Any]) -> Any:
    import openvino_genai

    scheduler = openvino_genai.SchedulerConfig()
    scheduler.max_num_seqs = settings["max_num_seqs"]
    scheduler.cache_size = settings["kv_cache_gigabytes"]
    scheduler.dynamic_split_fuse = True
    scheduler.enable_prefix_caching = False  # jobs are repeated: a cache would hold the whole prompts
    properties: dict[str, Any] = {"INFERENCE_NUM_THREADS": settings["num_threads"]}
    if settings["dtype"] == "float32":
        properties["INFERENCE_PRECISION_HINT"] = "f32"
    if settings["num_spec_tokens"]:
        properties["prompt_lookup"] = True
    tokenizer = openvino_genai.Tokenizer(settings["model"])
    return openvino_genai.ContinuousBatchingPipeline(settings["model"], tokenizer, scheduler, "CPU", **properties)


def _config(settings: dict[str, Any], job: dict[str, Any]) -> Any:
    import openvino_genai

    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = job["max_tokens"]
    config.ignore_eos = True
    config.do_sample = False
    config.apply_chat_template = False
    if settings["num_spec_tokens"]:
        config.num_assistant_tokens = settings["num_spec_tokens"]
        config.max_ngram_size = settings["prompt_lookup_max"]
    return config


def _serve(pipeline: Any, settings: dict[str, Any], job: dict[str, Any], *, first_id: int) -> dict[str, Any]:
    """Keep ``num_running`` requests going until all are done."""
    import openvino
    import openvino_genai

    config = _config(settings, job)
    waiting = deque((first_id + index, openvino.Tensor([token_ids])) for index, token_ids in enumerate(job["prompts"]))
    running: list[Any] = []
    num_tokens = 0
    started = time.perf_counter()
    while waiting or running:
        while waiting and len(running) < job["num_running"]:
            number, prompt = waiting.popleft()
            running.append(pipeline.add_request(number, prompt, config))
        pipeline.step()
        still_running = []
        for handle in running:
            # The status is asked first: what has finished by then has put out all of its tokens.
            if handle.get_status() == openvino_genai.GenerationStatus.RUNNING:
                still_running.append(handle)
            while handle.can_read():
                num_tokens += sum(len(output.generated_ids) for output in handle.read().values())
        running = still_running
    return {"seconds": time.perf_counter() - started, "output_tokens": num_tokens}


if __name__ == "__main__":
    main()
