"""Words and sentences: a tuple's number enters, a piece of text leaves, the same one each time.

Generated words follow Zipf's law; words and lines of a file come in its order, and again. The workload's hot keys are words
where words are generated, and places in the text where they come from a file.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastream.errors import SettingError
from elastream.workload import KeyChoice, Keys
from elastream_lab.apps.common.payload_files import read_text
from elastream_lab.apps.common.scatter import Numbers, scattered
from elastream_lab.apps.common.skew import zipf_of_share
from elastream_lab.apps.words.words_of_text import words_of

SHORTEST, LONGEST = 4, 12
"""Words of a generated sentence."""

MOST_WORDS = 100_000
"""The largest vocabulary: it is shipped whole to every worker."""

_SYLLABLES = [consonant + vowel for vowel in "aeiou" for consonant in "bcdfghjklmnprstvwxyz"]


@dataclass(frozen=True, eq=False)
class TextPayload:
    """Called with numbers, makes the source's columns: one entry of a pool each."""

    entries: pa.Array
    entry_of: KeyChoice
    skew: tuple[int, float]
    """How many words there are, and the exponent of Zipf's law that they follow, or that is nearest to it."""

    def __call__(self, numbers: Numbers) -> dict[str, Any]:
        places = self.entry_of(numbers, numbers % len(self.entries))
        return {"id": numbers, "raw": self.entries.take(pa.array(places))}


@dataclass(frozen=True, eq=False)
class SentencePayload:
    """Called with numbers, makes sentences of generated words."""

    vocabulary: pa.Array
    word_of: KeyChoice

    @property
    def skew(self) -> tuple[int, float]:
        return self.word_of.count, self.word_of.keys.zipf

    def __call__(self, numbers: Numbers) -> dict[str, Any]:
        lengths = SHORTEST + scattered(numbers, LONGEST - SHORTEST + 1).astype(np.int64)
        ends = np.cumsum(lengths)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
        of = np.repeat(numbers, lengths)
        words = self.vocabulary.take(pa.array(self.word_of(of, draws=of * (LONGEST + 1) + within)))
        offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
        sentences = pc.binary_join(pa.ListArray.from_arrays(offsets, words), " ")
        return {"id": numbers, "raw": pc.binary_join_element_wise(pc.utf8_capitalize(sentences), ".", "")}


def word_payload(file: str | None, keys: Keys, *, zipf: float, vocabulary: int) -> TextPayload:
    """The words of the file, as they stand there, else generated ones."""
    if file is None:
        choice = _skewed(keys, zipf).among(_checked(vocabulary))
        return TextPayload(pa.array(made_words(vocabulary)), choice, (vocabulary, choice.keys.zipf))
    lines = read_text(file)
    tokens = pa.array([token for line in lines for token in line.split()])
    return TextPayload(tokens, _as_written(keys).among(len(tokens)), skew_of_text(lines))


def sentence_payload(file: str | None, keys: Keys, *, zipf: float, vocabulary: int) -> TextPayload | SentencePayload:
    """The lines of the file, else sentences of generated words."""
    if file is None:
        choice = _skewed(keys, zipf).among(_checked(vocabulary))
        return SentencePayload(pa.array(made_words(vocabulary)), choice)
    lines = read_text(file)
    return TextPayload(pa.array(lines), _as_written(keys).among(len(lines)), skew_of_text(lines))


def made_words(count: int) -> list[str]:
    """Words that can be said, all different: numbers written in syllables."""
    base = len(_SYLLABLES)
    made = []
    for number in range(base, base + count):
        word = ""
        while number:
            number, digit = divmod(number, base)
            word = _SYLLABLES[digit] + word
        made.append(word)
    return made


def skew_of_text(lines: list[str]) -> tuple[int, float]:
    """As many words as the text has, and the exponent by which the most frequent one is as frequent as in it."""
    counts = Counter(words_of(pa.array(lines))[0].to_pylist())
    if not counts:
        return 1, 0.0
    return len(counts), zipf_of_share(len(counts), max(counts.values()) / counts.total())


def _skewed(keys: Keys, zipf: float) -> Keys:
    """A workload that has a skew of its own keeps it."""
    if not 0 <= zipf < float("inf"):
        raise SettingError(f"zipf must be 0 (all words the same) or more, got {zipf!r}")
    return keys if keys.zipf else replace(keys, zipf=zipf)


def _as_written(keys: Keys) -> Keys:
    return replace(keys, zipf=0.0)


def _checked(vocabulary: int) -> int:
    if not 1 <= vocabulary <= MOST_WORDS:
        raise SettingError(f"vocabulary must be 1..{MOST_WORDS} words, got {vocabulary!r}")
    return vocabulary
