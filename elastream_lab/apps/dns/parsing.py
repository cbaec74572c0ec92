"""Queries as clients ask them enter; names in one spelling, taken apart and judged by the rules of DNS, leave.

Without the list of all public suffixes, a name is registered under its last label, or under the last two when they
look like `co.uk`: a word that countries use in this way before two letters.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastream.topology import parse_schema

PARSED = parse_schema(
    "id long, client string, kind string, name string, valid boolean, labels int, tld string, domain string, label string"
)

LONGEST_NAME = 253
LONGEST_LABEL = 63

# Without counted repetitions: Arrow compiles these at every call, and counting makes that many times slower.
_VALID = r"^(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)+[a-z][a-z0-9-]*[a-z0-9]$"
_PARTS = (
    r"(?:^|\.)(?P<domain>(?P<label>[^.]+)\."
    r"(?:(?:ac|co|com|edu|go|gob|gov|mil|ne|net|or|org)\.[a-z][a-z]|[^.]+))$"
)


def parse_queries(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A name that breaks the rules is kept and marked: it is worth storing who asked for it."""
    # Resolvers mix the case of letters to recognise their answers, and a full name may end in a dot.
    asked = pc.utf8_lower(batch.column("name"))
    names = pc.if_else(pc.ends_with(asked, "."), pc.utf8_slice_codeunits(asked, 0, -1), asked)
    pieces = pc.split_pattern(names, ".")
    longest = np.maximum.reduceat(np.asarray(pc.binary_length(pieces.flatten())), np.asarray(pieces.offsets)[:-1])
    short = (longest <= LONGEST_LABEL) & (np.asarray(pc.binary_length(names)) <= LONGEST_NAME)
    parts = pc.extract_regex(names, _PARTS)
    return pa.RecordBatch.from_arrays(
        [
            batch.column("id"),
            batch.column("client"),
            batch.column("kind"),
            names,
            pc.and_(pc.match_substring_regex(names, _VALID), pa.array(short)),
            pc.list_value_length(pieces),
            pieces.flatten().take(pa.array(np.asarray(pieces.offsets)[1:] - 1)),
            pc.fill_null(pc.struct_field(parts, "domain"), names),
            pc.fill_null(pc.struct_field(parts, "label"), names),
        ],
        schema=PARSED,
    )
