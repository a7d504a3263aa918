"""Short stories from a template grammar."""

from __future__ import annotations

from datasets.training import words as w
from datasets.training.pools import Pools
from datasets.training.task import Task
from datasets.training.words import with_article as a

TRAITS = w.split_words("young old brave shy clever kind lazy curious small quiet cheerful stubborn")
PEOPLE = ("girl", "boy", "baker", "sailor", "farmer", "painter", "tailor", "gardener", "teacher")
SPOTS = (
    "a village by the sea", "a house at the edge of the forest", "a small town in the hills",
    "a tower near the river", "a farm in a green valley", "a street full of shops",
    "a cottage under tall trees", "a harbour with many boats",
)  # fmt: skip
OBJECTS = w.THINGS
LOSSES = (
    "One morning the {o} was gone.", "One windy day the {o} flew away.",
    "One evening the {o} fell into the river.", "One night somebody took the {o}.",
    "One day the {o} broke in two.",
)  # fmt: skip
FEELINGS = (
    "{n} was very sad.", "{n} did not know what to do.", "{n} sat down and cried a little.",
    "{n} was worried, but did not give up.", "At first {n} was angry.",
)  # fmt: skip
SEARCHES = (
    "{n} looked under the bed and behind the door, but found nothing.",
    "{n} walked along the river and asked everyone about the {o}.",
    "{n} searched the whole garden until the sun went down.",
    "{n} climbed the hill to look around.", "{n} made a list of all the places to look.",
    "{n} asked the neighbours, but nobody had seen the {o}.",
)  # fmt: skip
MEETINGS = (
    "On the road {n} met {h} the {k}.", "Then {h} the {k} came by.",
    "Near the bridge {a_k} named {h} was waiting.", "In the forest lived {a_k} called {h}.",
)  # fmt: skip
TALKS = (
    '"Do not worry," said {h}. "I will help you."', '"Why are you so sad?" asked {h}.',
    '"Follow me," said {h}. "I know where to look."', '"I have seen your {o}," said {h}.',
    '"Two can look better than one," said {h}.',
)  # fmt: skip
TURNS = (
    "Together they followed the small footprints in the snow.",
    "They walked all day and shared a piece of bread.", "They crossed the water in a little boat.",
    "They waited until the moon was high.", "They looked in every corner of the old mill.",
    "They worked side by side the whole night.",
)  # fmt: skip
ENDS = (
    "At last they found the {o} under a tree.", "There was the {o}, safe and dry.",
    "In the end the {o} was back where it belonged.",
    "By the morning the {o} was as good as new.", "Behind a big stone they saw the {o}.",
)  # fmt: skip
THANKS = (
    '"Thank you, {h}," said {n}.', "{n} gave {h} a warm hug.",
    "{n} and {h} danced with joy.", "{n} invited {h} to dinner.",
)  # fmt: skip
CLOSES = (
    "From that day on, {n} and {h} were best friends.",
    "{n} never forgot how good it is to have a friend.",
    "{n} learned that asking for help is brave.",
    "And every evening they told the story again.",
    "That night {n} slept well.",
)  # fmt: skip
ASKS = (
    "Write a short story about {x}.", "Tell me a short story about {x}.",
    "Tell a story about {x}.", "Please write a story about {x}.", "I would like a story about {x}.",
)  # fmt: skip


def write_story(p: Pools) -> Task:
    """Hero, thing or title to a story of seven to eleven sentences."""
    rng = p.rng
    kind = rng.choice(w.ANIMALS) if rng.random() < 0.5 else rng.choice(PEOPLE)
    slots = {"n": p.person(), "h": p.person(), "o": rng.choice(OBJECTS), "k": rng.choice(w.ANIMALS)}
    trait, spot = rng.choice(TRAITS), rng.choice(SPOTS)
    name, thing, helper = slots["n"], slots["o"], slots["h"]
    opening = rng.choice((
        f"Once upon a time there was {a(trait)} {kind} named {name}.",
        f"In {spot} lived {a(trait)} {kind} called {name}.",
        f"{name} was {a(trait)} {kind}.",
        f"Long ago, {a(trait)} {kind} named {name} lived in {spot}.",
    ))  # fmt: skip
    love = rng.choice((
        f"{name} had {a(thing)} and loved it very much.",
        f"What {name} loved most was {a(thing)}.",
        f"Every day {name} played with {a(thing)}.",
        f"On a birthday {name} got {a(thing)} as a gift.",
    ))  # fmt: skip
    parts = [opening, love, rng.choice(LOSSES)]
    parts += rng.sample((rng.choice(FEELINGS), rng.choice(SEARCHES)), rng.choice((1, 2)))
    slots["a_k"] = a(slots["k"])
    parts += [rng.choice(MEETINGS), rng.choice(TALKS), rng.choice(TURNS), rng.choice(ENDS)]
    parts += [rng.choice(group) for group in (THANKS, CLOSES) if rng.random() < 0.75]
    story = " ".join(parts).format(**slots)
    hint = rng.choice((
        f"{name}, {a(trait)} {kind}, and a lost {thing}",
        f"{a(kind)} named {name}",
        f"{name} the {kind} and {a(thing)}",
        f"{a(trait)} {kind} called {name}",
        f"{name} and {helper}",
        f"{a(kind)} and {a(thing)}",
        f"{a(kind)} called {name} who has {a(thing)}",
        f"friendship between {name} and {helper} the {slots['k']}",
    ))  # fmt: skip
    return Task("story", rng.choice(ASKS).format(x=hint), "", story, ("Prompt", "Story"))
