"""The words of texts: strings enter; words in small letters leave, each with the place of the text that it stands in.

A word is a run of letters, digits and apostrophes, without the apostrophes at its ends.
"""

import re

import pyarrow as pa

# Arrow compiles an expression anew for each batch, and that of all the world's letters takes milliseconds.
_WORD = re.compile(r"[^\W_]+(?:['’]+[^\W_]+)*")


def words_of(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    words: list[str] = []
    places: list[int] = []
    for place, text in enumerate(texts.to_pylist()):
        found = _WORD.findall(text.lower())
        words += found
        places += [place] * len(found)
    return pa.array(words, pa.string()), pa.array(places, pa.int64())
