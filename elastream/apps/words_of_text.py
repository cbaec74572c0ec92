"""The words of texts: strings enter; words in small letters leave, each with the place of the text that it stands in.

A word is a run of letters, digits and apostrophes, without the apostrophes at its ends.
"""

import pyarrow as pa
import pyarrow.compute as pc

APOSTROPHES = "'’"

BETWEEN = rf"[^\p{{L}}\p{{M}}\p{{N}}{APOSTROPHES}]+"
"""A regular expression for what stands between two words."""


def words_of(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    pieces = pc.split_pattern_regex(pc.utf8_lower(texts), BETWEEN)
    words = pc.utf8_trim(pc.list_flatten(pieces), APOSTROPHES)
    there = pc.not_equal(words, "")
    return words.filter(there), pc.list_parent_indices(pieces).filter(there)
