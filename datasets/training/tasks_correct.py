"""Exercises that ask for a corrected sentence."""

from __future__ import annotations

from random import Random

from datasets.training.pools import Pools
from datasets.training.task import Task
from datasets.training.words import split_words, with_article

VERBS = split_words(
    "walk paint clean open visit carry repair enjoy like need want collect sell cook bake plant "
    "move deliver order return check count fold pack design build draw read write send bring"
)
TIMES = (
    "every day", "every morning", "on Monday", "on Friday", "in the evening", "at night",
    "after lunch", "before work", "in the summer", "at the weekend", "twice a week", "every year",
)  # fmt: skip
PLACES = (
    "in the garden", "at the market", "near the river", "in the kitchen", "at the station",
    "in the library", "behind the school", "on the bridge", "in the office", "by the window",
)  # fmt: skip
PLURALS = split_words("children students neighbours workers teachers friends visitors engineers farmers dogs")
ADJECTIVES = split_words("tired happy late early busy quiet careful proud hungry ready")
ASKS = (
    "Correct the sentence:",
    "Fix the mistakes in this sentence.",
    "Correct the spelling and grammar:",
    "Please correct this sentence:",
    "Rewrite the sentence without mistakes.",
    "Proofread the following sentence:",
    "Correct this text.",
    "Fix spelling and grammar:",
)


def _third(verb: str) -> str:
    if verb.endswith(("sh", "ch", "s", "x")):
        return verb + "es"
    return verb[:-1] + "ies" if verb.endswith("ry") else verb + "s"


def _swap_article(phrase: str) -> str:
    return ("a " if phrase[0] in "aeiou" else "an ") + phrase


def _misspell(rng: Random, text: str) -> str:
    """Break one lower-case word of five letters or more."""
    parts = text.split(" ")
    spots = [i for i, word in enumerate(parts) if word.islower() and len(word) >= 5]
    if not spots:
        return text
    i = rng.choice(spots)
    word = parts[i].rstrip(".")
    j = rng.randrange(1, len(word) - 2)
    broken = rng.choice(
        (
            word[:j] + word[j + 1] + word[j] + word[j + 2 :],
            word[:j] + word[j + 1 :],
            word[:j] + word[j] + word[j:],
        )
    )
    parts[i] = broken + parts[i][len(word) :]
    return " ".join(parts)


def _pair(p: Pools) -> tuple[str, str]:
    """Return a right sentence and one with a grammar mistake."""
    rng, name, item = p.rng, p.person(), p.item()
    verb, tail = rng.choice(VERBS), rng.choice(TIMES + PLACES)
    many, mood = rng.choice(PLURALS), rng.choice(ADJECTIVES)
    city = p.city()
    right, wrong = rng.choice(
        (
            (f"{name} {_third(verb)} the {item} {tail}.", f"{name} {verb} the {item} {tail}."),
            (f"The {many} {verb} the {item} {tail}.", f"The {many} {_third(verb)} the {item} {tail}."),
            (f"{name} has {with_article(item)} {tail}.", f"{name} have {with_article(item)} {tail}."),
            (f"{name} bought {with_article(item)} {tail}.", f"{name} bought {_swap_article(item)} {tail}."),
            (f"The {many} were {mood} {tail}.", f"The {many} was {mood} {tail}."),
            (f"{name} was {mood} {tail}.", f"{name} were {mood} {tail}."),
            (f"{name} and the {many} are {mood} {tail}.", f"{name} and the {many} is {mood} {tail}."),
            (f"We went to {city} with the {many} {tail}.", f"We goed to {city} with the {many} {tail}."),
            (f"She does not {verb} the {item} in {city}.", f"She do not {verb} the {item} in {city}."),
            (f"They do not {verb} the {item} in {city}.", f"They does not {verb} the {item} in {city}."),
            (f"{name} lives in {city} with the {many}.", f"{name} live in {city} with the {many}."),
            (f"I am {mood} {tail}.", f"I is {mood} {tail}."),
        )
    )  # fmt: skip
    return right, wrong


def _break(p: Pools, right: str, wrong: str) -> str:
    rng = p.rng
    text = wrong if rng.random() < 0.6 else right
    if text == right or rng.random() < 0.4:
        text = _misspell(rng, text)
    if rng.random() < 0.2:
        text = text[0].lower() + text[1:]
    if rng.random() < 0.2:
        text = text.rstrip(".")
    if rng.random() < 0.1:
        words = text.split(" ")
        i = rng.randrange(len(words))
        text = " ".join(words[: i + 1] + words[i:])
    return text if text != right else wrong


def correct_sentence(p: Pools) -> Task:
    """Broken sentence to the right one."""
    pairs = [_pair(p) for _ in range(p.rng.choice((1, 1, 1, 2)))]
    broken = " ".join(_break(p, right, wrong) for right, wrong in pairs)
    right = " ".join(right for right, _ in pairs)
    return Task("correct", p.pick(ASKS), broken, right, ("Wrong", "Right"))


SENTIMENT = {
    "positive": ("great", "excellent", "wonderful", "very good", "fantastic", "lovely", "perfect"),
    "negative": ("terrible", "awful", "broken", "very bad", "poor", "useless", "disappointing"),
    "neutral": ("average", "okay", "ordinary", "acceptable", "neither good nor bad"),
}
REASONS = {
    "positive": ("I love it", "I would buy it again", "It works well", "It arrived early"),
    "negative": ("I want my money back", "It stopped working", "I regret it", "It arrived late"),
    "neutral": ("It does the job", "It is what I expected", "Nothing special"),
}
LABEL_ASKS = (
    "Is this review positive, negative or neutral?",
    "Classify the review as positive, negative or neutral.",
    "Label the sentiment of this review (positive, negative, neutral):",
    "What is the sentiment of the review?",
)


def classify_review(p: Pools) -> Task:
    """Review to one of three labels."""
    label = p.pick(tuple(SENTIMENT))
    seller = p.pick((p.company(), f"a shop in {p.city()}", p.person()))
    first = p.pick((f"The {p.item()} from {seller} is", f"I got the {p.item()} from {seller} and it is"))
    text = f"{first} {p.pick(SENTIMENT[label])}. {p.pick(REASONS[label])}."
    return Task("classify", p.pick(LABEL_ASKS), text, label, ("Review", "Sentiment"))
