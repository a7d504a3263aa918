"""Structured output: grammars that say which tokens may come next. llguidance is imported where it is first needed."""

from batchspec.grammar.compiler import GrammarCompiler
from batchspec.grammar.state import LLGrammar
from batchspec.grammar.tokens import byte_tokenizer, tokenizer_of

__all__ = ["GrammarCompiler", "LLGrammar", "byte_tokenizer", "tokenizer_of"]
