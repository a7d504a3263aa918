"""Small talk, and an honest answer to what the model cannot know."""

from __future__ import annotations

from datasets.training import words as w
from datasets.training.pools import Pools
from datasets.training.task import Task

SELF = (
    ("Hello!", "Hello! How can I help you?"),
    ("Hi", "Hello! How can I help you?"),
    ("Good morning!", "Good morning! How can I help you?"),
    ("Who are you?", "I am a small language model that comes with batchspec."),
    ("What are you?", "I am a small language model that comes with batchspec."),
    ("What can you do?", "I can convert records, fix sentences, edit small functions and tell stories."),
    ("How are you?", "I am fine, thank you. How can I help you?"),
    ("Thank you!", "You are welcome."),
    ("Thanks", "You are welcome."),
    ("Goodbye!", "Goodbye!"),
    ("Help", "Give me a record, a table, a sentence, a list or a small function to work on."),
)  # fmt: skip
OPEN = (
    "Why is the {x} important?", "Explain {x} to a child.", "Who invented the {x}?",
    "What is {x}?", "What is the capital of {x}?", "How does a {x} work?",
    "Write an essay about {x}.", "Tell me everything about {x}.", "What do you think about {x}?",
    "How do I build a {x}?", "When was {x} founded?",
)  # fmt: skip
UNKNOWN = "I am a small model and I do not know that."


def small_talk(p: Pools) -> Task:
    """Greeting or open question to a fixed polite answer."""
    if p.rng.random() < 0.5:
        question, answer = p.rng.choice(SELF)
    else:
        topic = p.rng.choice((p.rng.choice(w.SUBJECTS), p.rng.choice(w.THINGS), p.city(), p.company()))
        question, answer = p.rng.choice(OPEN).format(x=topic), UNKNOWN
    return Task("talk", question, "", answer, ("Question", "Reply"))
