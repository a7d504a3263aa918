"""Exercises over short paragraphs: questions, summaries and rewrites."""

from __future__ import annotations

from collections.abc import Callable

from datasets.training import words as w
from datasets.training.pools import Pools
from datasets.training.task import Task
from datasets.training.words import with_article as a

Fact = tuple[str, str, str]


def _facts(p: Pools, name: str) -> list[Fact]:
    """Return (sentence, question, answer) triples about one person."""
    city, role, company, item = p.city(), p.role(), p.company(), p.item()
    age, food, hobby = p.rng.randrange(18, 90), p.pick(w.FOODS), p.pick(w.HOBBIES)
    day, pet, subject, born = p.pick(w.DAYS), p.pick(w.ANIMALS), p.pick(w.SUBJECTS), p.city()
    pet_name = p.person()

    def lives(verb: str) -> Fact:
        return (f"{name} {verb} {city}.", f"Where does {name} live?", f"{name} lives in {city}.")

    return [
        lives(p.pick(("lives in", "has a house in", "moved to", "now lives in"))),
        (f"{name} works as {a(role)}.", f"What is {name}'s job?", f"{name} works as {a(role)}."),
        (f"{name} is employed by {company}.", f"Who employs {name}?", f"{name} works for {company}."),
        (f"{name} works for {company}.", f"Which company does {name} work for?", f"{name} works for {company}."),
        (f"{name} is {age} years old.", f"How old is {name}?", f"{name} is {age} years old."),
        (f"{name} likes to eat {food}.", f"What does {name} like to eat?", f"{name} likes to eat {food}."),
        (f"{name} spends the evening with {hobby}.", f"What is {name}'s hobby?", f"{name}'s hobby is {hobby}."),
        (f"On {day}, {name} bought {a(item)}.", f"What did {name} buy?", f"{name} bought {a(item)}."),
        (f"On {day}, {name} sold {a(item)}.", f"When did {name} sell the {item}?", f"{name} sold it on {day}."),
        (f"{name} studied {subject} at school.", f"What did {name} study?", f"{name} studied {subject}."),
        (f"{name} was born in {born}.", f"Where was {name} born?", f"{name} was born in {born}."),
        (f"{name} has {a(pet)} called {pet_name}.", f"What is the name of {name}'s {pet}?",
         f"The {pet} is called {pet_name}."),
    ]  # fmt: skip


QA_ASKS = (
    "Read the text and answer the question.",
    "Answer the question about the text.",
    "Use the paragraph to answer the question.",
    "Answer from the text below.",
    "Here is a short text and a question about it.",
)


def answer_question(p: Pools) -> Task:
    """Paragraph and question to a short answer taken from the paragraph."""
    rng = p.rng
    people = [p.person() for _ in range(rng.choice((1, 2, 2, 3)))]
    facts: list[Fact] = []
    for name in people:
        facts += rng.sample(_facts(p, name), rng.choice((1, 2, 2, 3)))
    if rng.random() < 0.6:
        rng.shuffle(facts)
    text = " ".join(fact[0] for fact in facts)
    picked = rng.sample(facts, min(len(facts), 3))
    question, answer = picked[0][1], picked[0][2]
    mark = p.pick(("\nQuestion: ", "\n", " ", "\nQ: "))
    follow = tuple((q, a) for _, q, a in picked[1:])
    prefix = p.pick(("", "", "Text: "))
    return Task("question", p.pick(QA_ASKS), f"{prefix}{text}{mark}{question}", answer, ("Text", "Answer"), follow)


EVENTS: tuple[tuple[str, str, str], ...] = (
    ("opened", "a new library", "The reading room has space for {n} people."),
    ("closed", "the old bridge", "Workers found {n} cracks in the stone."),
    ("planted", "a row of trees", "There are {n} trees along the road."),
    ("held", "a music festival", "About {n} guests came to listen."),
    ("started", "a bus line", "The line has {n} stops."),
    ("repaired", "the town hall", "The work took {n} days."),
    ("opened", "a swimming pool", "A ticket costs {n} coins."),
    ("held", "a book fair", "There were {n} tables full of books."),
    ("built", "a playground", "It has {n} swings and a long slide."),
    ("started", "a food market", "Every week {n} farmers bring their goods."),
)
SUMMARY_ASKS = (
    "Summarise the text in one sentence.",
    "Give a one sentence summary:",
    "Summarize this news item in one sentence.",
    "What is the main point of this text?",
    "Write a short summary of the text:",
)


def summarise(p: Pools) -> Task:
    """News item to a one-sentence summary."""
    rng, city, day, mayor = p.rng, p.city(), p.pick(w.DAYS), f"{p.person()} {p.surname()}"
    verb, thing, detail = rng.choice(EVENTS)
    first = p.pick((
        f"On {day}, the town of {city} {verb} {thing}.",
        f"The people of {city} had a big day on {day}. The town {verb} {thing}.",
        f"{day} was a special day for {city}, because the town {verb} {thing}.",
    ))  # fmt: skip
    more = [
        detail.format(n=rng.randrange(5, 500)),
        p.pick((f"Mayor {mayor} gave a speech.", f'"We are proud," said mayor {mayor}.')),
        f"{p.person()}, {a(p.role())}, came with the family.",
        p.pick(("It rained in the morning.", "The sun was out all day.", "The band played until late.")),
    ]
    rest = rng.sample(more, rng.choice((1, 2, 3)))
    answer = f"{city} {verb} {thing} on {day}."
    return Task("summary", p.pick(SUMMARY_ASKS), " ".join([first, *rest]), answer, ("News", "Summary"))


def _replace(p: Pools, text: str, names: list[str]) -> tuple[str, str]:
    old, new = p.rng.choice(names), p.person()
    ask = p.pick((
        f"Replace {old} with {new} in this text:",
        f"Change the name {old} to {new}:",
        f"In the text below, write {new} instead of {old}.",
    ))  # fmt: skip
    return ask, text.replace(old, new)


def _bullets(p: Pools, entries: list[str]) -> tuple[str, str]:
    if p.rng.random() < 0.5:
        ask = p.pick(("Turn this list into bullet points:", "Write each entry as a bullet point."))
        return ask, "\n".join(f"- {entry}" for entry in entries)
    ask = p.pick(("Number these entries:", "Turn this into a numbered list:"))
    return ask, "\n".join(f"{i}. {entry}" for i, entry in enumerate(entries, 1))


def rewrite(p: Pools) -> Task:
    """Copy a text with one change: another name, bullets, upper case, or none."""
    rng = p.rng
    roll = rng.random()
    if roll < 0.4:
        names = [p.person() for _ in range(rng.choice((1, 2)))]
        facts = [f[0] for name in names for f in rng.sample(_facts(p, name), rng.choice((1, 2)))]
        text = " ".join(facts)
        ask, answer = _replace(p, text, names)
    elif roll < 0.75:
        makers: tuple[Callable[[], str], ...] = (p.person, p.city, p.item, p.role, p.company)
        entries = [rng.choice(makers)() for _ in range(rng.choice((2, 3, 4, 5, 6)))]
        text = p.pick((", ", "; ", "\n")).join(entries)
        ask, answer = _bullets(p, entries)
    else:
        text = answer = " ".join(f[0] for f in rng.sample(_facts(p, p.person()), rng.choice((1, 2))))
        ask = p.pick(("Repeat this text exactly:", "Copy the following text:", "Say this again:"))
    return Task("rewrite", ask, text, answer, ("Input", ask.rstrip(":.")))
