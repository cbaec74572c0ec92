"""Domain names, ordinary and made by an algorithm: a count and a random generator enter, names leave.

Ordinary names are words, people, abbreviations and numbers put together. The others are as malware makes them to find
its masters: letters, letters and digits, or hexadecimal digits, drawn blindly. Both kinds have the same endings, so that
no classifier learns the ending instead of the name.
"""

from random import Random

from elastream_lab.apps.dns.words import (
    ENDINGS,
    ENGLISH_WORDS,
    FOREIGN_WORDS,
    PERSON_WORDS,
    PINYIN_ENDS,
    PINYIN_STARTS,
    TLDS,
    WEB_WORDS,
)

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"


def benign_names(count: int, random: Random) -> list[str]:
    return [f"{_benign(random)}.{random.choice(TLDS)}" for _ in range(count)]


def generated_names(count: int, random: Random) -> list[str]:
    return [f"{_generated(random)}.{random.choice(TLDS)}" for _ in range(count)]


def _benign(random: Random) -> str:
    shape = random.choices(
        ("words", "ending", "person", "pinyin", "number", "letters", "letters word"), weights=(55, 14, 8, 7, 6, 6, 4)
    )[0]
    if shape == "words":
        return random.choice(("", "", "", "", "-")).join(_word(random) for _ in range(random.choice((1, 2, 2, 2, 3))))
    if shape == "ending":
        return _word(random) + random.choice(ENDINGS)
    if shape == "person":
        return random.choice(("", "", "-")).join(random.choices(PERSON_WORDS, k=2))
    if shape == "pinyin":
        syllables = [random.choice(PINYIN_STARTS) + random.choice(PINYIN_ENDS) for _ in range(random.randint(2, 4))]
        return "".join(syllables) + random.choice(("", "", _some(_DIGITS, 1, 4, random)))
    if shape == "number":
        number = _some(_DIGITS, 1, 5, random)
        return random.choice((number + _word(random), _word(random) + number, number + _some(_DIGITS, 2, 5, random)))
    if shape == "letters":
        return _some(_LETTERS, 2, 6, random) + random.choice(("", "", "", _some(_DIGITS, 1, 3, random)))
    return random.choice(("", "-")).join(random.sample((_some(_LETTERS, 1, 4, random), _word(random)), 2))


def _generated(random: Random) -> str:
    shape = random.choices(("letters", "long letters", "letters and digits", "hexadecimal"), weights=(55, 20, 18, 7))[0]
    if shape == "letters":
        return _some(_LETTERS, 8, 18, random)
    if shape == "long letters":
        return _some(_LETTERS, 18, 30, random)
    if shape == "letters and digits":
        return _some(_LETTERS + _DIGITS, 10, 30, random)
    return _some("0123456789abcdef", 12, 32, random)


def _word(random: Random) -> str:
    lists = random.choices((WEB_WORDS, ENGLISH_WORDS, FOREIGN_WORDS, PERSON_WORDS), weights=(35, 30, 25, 10))[0]
    return random.choice(lists)


def _some(signs: str, least: int, most: int, random: Random) -> str:
    return "".join(random.choices(signs, k=random.randint(least, most)))
