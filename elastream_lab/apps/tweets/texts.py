"""Texts as people write them, with the truth about each: a count and a random generator enter, labelled texts leave.

Topics share words, moods are negated ("not bad"), and some texts say little: a classifier cannot be perfect on them.
"""

from dataclasses import dataclass
from random import Random

from elastream_lab.apps.tweets.words import (
    BAD_WORDS,
    COMMON_WORDS,
    GOOD_WORDS,
    NEGATIONS,
    NEWS_CLOSINGS,
    NEWS_OPENINGS,
    OPINION_CLOSINGS,
    OPINION_OPENINGS,
    STRESSES,
    TOPIC_WORDS,
)

TOPICS = tuple(TOPIC_WORDS)
KINDS = ("news", "opinion")
MOODS = ("positive", "negative", "neutral")

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@dataclass(frozen=True)
class LabelledText:
    text: str
    topic: str
    kind: str
    mood: str
    """News is neutral."""


def labelled_texts(count: int, random: Random) -> list[LabelledText]:
    return [_labelled_text(random) for _ in range(count)]


def _labelled_text(random: Random) -> LabelledText:
    topic = random.choice(TOPICS)
    if random.random() < 0.5:
        return LabelledText(_news(topic, random), topic, "news", "neutral")
    mood = random.choice(MOODS)
    return LabelledText(_opinion(topic, mood, random), topic, "opinion", mood)


def _news(topic: str, random: Random) -> str:
    parts = [_body(topic, random)]
    if random.random() < 0.7:
        parts.insert(0, random.choice(NEWS_OPENINGS).strip())
    if random.random() < 0.6:
        parts.append(random.choice(NEWS_CLOSINGS))
    if random.random() < 0.15:
        parts.append(_mood(random.choice(MOODS[:2]), random))
    if random.random() < 0.7:
        parts.append(_link(random))
    return _decorated(parts, topic, random)


def _opinion(topic: str, mood: str, random: Random) -> str:
    parts = [_body(topic, random)]
    if random.random() < 0.6:
        parts.insert(0, random.choice(OPINION_OPENINGS).strip())
    if mood == "neutral":
        # Torn between the two, or no word of mood at all.
        if random.random() < 0.3:
            parts += [_mood("positive", random), "but", _mood("negative", random)]
    else:
        parts += [_mood(mood, random) for _ in range(random.choice((1, 1, 2, 3)))]
    if random.random() < 0.4:
        parts.append(random.choice(OPINION_CLOSINGS))
    if random.random() < 0.15:
        parts.append(_link(random))
    if random.random() < 0.2:
        parts.insert(0, "@" + random.choice(COMMON_WORDS) + str(random.randrange(100)))
    return _decorated(parts, topic, random)


def _body(topic: str, random: Random) -> str:
    words = []
    for _ in range(random.randint(5, 14)):
        luck = random.random()
        if luck < 0.30:
            words.append(random.choice(TOPIC_WORDS[topic]))
        elif luck < 0.40:
            words.append(random.choice(TOPIC_WORDS[random.choice(TOPICS)]))
        else:
            words.append(random.choice(COMMON_WORDS))
    return " ".join(words)


def _mood(mood: str, random: Random) -> str:
    """A word of this mood, or the denial of one of the other."""
    words, others = (GOOD_WORDS, BAD_WORDS) if mood == "positive" else (BAD_WORDS, GOOD_WORDS)
    if random.random() < 0.2:
        return f"{random.choice(NEGATIONS)} {random.choice(others[:-6])}"
    return f"{random.choice(STRESSES)} {random.choice(words)}".strip()


def _decorated(parts: list[str], topic: str, random: Random) -> str:
    if random.random() < 0.3:
        parts.append("#" + random.choice(TOPIC_WORDS[topic]))
    text = " ".join(part for part in parts if part).replace(" :", ":").replace(" ,", ",").replace(" ?", "?")
    if random.random() < 0.05:
        return text.upper()
    return text[0].upper() + text[1:] + random.choice(("", ".", "!", "..."))


def _link(random: Random) -> str:
    return "https://t.co/" + "".join(random.choices(_LETTERS, k=10))
