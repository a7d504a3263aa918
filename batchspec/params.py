"""How the tokens of a request are chosen, when they end, and what is told about them: values in vLLM's names."""

from dataclasses import dataclass

__all__ = ["SamplingParams", "StructuredOutput"]


@dataclass(frozen=True, kw_only=True)
class StructuredOutput:
    """A grammar that the output must follow: exactly one of the first four is given.

    Attributes:
        json: a JSON schema, as JSON text.
        regex: a regular expression for the whole output.
        choice: the texts among which the output is one.
        grammar: a context-free grammar in Lark or GBNF syntax.
        any_whitespace: JSON may have white space between its tokens.
        whitespace_pattern: a regular expression for that white space; None for the grammar engine's own.
    """

    json: str | None = None
    regex: str | None = None
    choice: tuple[str, ...] | None = None
    grammar: str | None = None
    any_whitespace: bool = True
    whitespace_pattern: str | None = None


@dataclass(frozen=True, kw_only=True)
class SamplingParams:
    """How the tokens of one request are chosen and when they end.

    Logits are processed in this order: what is not allowed (structured output, allowed tokens, bad words, min_tokens)
    is removed, the bias is added, the repetition, frequency and presence penalties are applied, then temperature,
    top_k, top_p and min_p.

    Attributes:
        max_tokens: the most tokens to emit; None means up to the context limit.
        min_tokens: tokens to emit before an end-of-sequence or stop token may be chosen or a stop string be found.
        temperature: 0 is greedy; otherwise logits are divided by it.
        top_p: keep the smallest set of tokens whose probability reaches this; 1 keeps all.
        top_k: keep this many tokens; 0 keeps all.
        min_p: drop tokens less likely than this fraction of the likeliest; 0 keeps all.
        seed: the noise stream. Same seed, prompt and parameters give the same text whatever the speculation.
        n: independent samples for each prompt.
        stop: texts that end the generation where they first appear.
        include_stop_str_in_output: keep the stop text, or the text of the stop token, in the output.
        stop_token_ids: tokens that end the generation, besides the model's own end-of-sequence tokens.
        ignore_eos: do not end at the model's end-of-sequence tokens.
        presence_penalty: subtracted from the logit of every token that is in the output so far.
        frequency_penalty: subtracted once for each time that the token is in the output so far.
        repetition_penalty: logits of tokens in the prompt or the output are divided by it if positive, else multiplied.
        logit_bias: (token id, number to add to its logit).
        bad_words: texts whose tokens, in this order, are not to be generated.
        allowed_token_ids: the only tokens that may be generated; None allows all.
        structured: the grammar of the output; None for none.
        logprobs: how many of the likeliest tokens to tell for every output token, besides the token itself; None for
            no log probabilities at all. They are of the processed distribution.
        prompt_logprobs: the same for every prompt token, of the model's own distribution.
        return_token_ids: put the prompt's and the output's token ids into the record.
        skip_special_tokens: leave special tokens out of the text.
    """

    max_tokens: int | None = None
    min_tokens: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int = 0
    n: int = 1
    stop: tuple[str, ...] = ()
    include_stop_str_in_output: bool = False
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    bad_words: tuple[str, ...] = ()
    allowed_token_ids: tuple[int, ...] | None = None
    structured: StructuredOutput | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    return_token_ids: bool = False
    skip_special_tokens: bool = True
