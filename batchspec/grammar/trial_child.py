"""What a trial runs in a process of its own: it compiles grammars that it is sent and says how long that took.

Run as a file, so that nothing but llguidance is imported. It reads a line of JSON for each grammar, the source as a
string, and answers with a line: the seconds of processor time that it took to find the tokens that may come first.
"""

import json
import math
import resource
import sys
import time

__all__ = ["main"]


def main(compile_seconds: float, memory_bytes: int) -> None:
    """Answer until standard input ends; a grammar that takes more than its share ends the process.

    Args:
        compile_seconds: of processor time for each grammar.
        memory_bytes: of address space.
    """
    from llguidance import LLMatcher, LLParserLimits, LLTokenizer

    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tokenizer, limits = LLTokenizer("byte"), LLParserLimits(verbose_errors=False)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    for line in sys.stdin:
        allowed = math.ceil(time.process_time() + compile_seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (allowed, hard))
        matcher = LLMatcher(tokenizer, json.loads(line), log_level=0, limits=limits)
        began = time.process_time()
        if not matcher.is_error():
            matcher.compute_bitmask()
            matcher.compute_ff_tokens()
        print(time.process_time() - began, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
