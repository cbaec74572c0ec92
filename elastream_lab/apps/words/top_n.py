"""Top_N of the Dr-Stream paper (figure 17): which words come most often?

Words enter as they stand in a text; a reader cleans them, `count` counts them, `rank` keeps the best of its own, and `merge`
makes one list of all ranks.

What is remembered where: `count` knows the total of every word. `rank` is keyed by a part of all words, chosen by a word's hash,
and knows the best N of each part. `merge` gets what changed in any part, and the database has the best N of that. Counts only grow,
so a word that N others surpass stays surpassed until its own count grows, and then it comes again. So nothing but the best has
to be kept, in whatever order counts arrive and wherever a part has moved. With another N, begin a new base.
"""

from dataclasses import dataclass

import pyarrow as pa

from elastream.connectors import sources
from elastream.errors import SettingError
from elastream.routing.key_groups import groups_of
from elastream.topology import DUE, Topology, groupings, parse_schema
from elastream.workload import Arrivals
from elastream_lab.apps.common.service import service, usual_arrivals
from elastream_lab.apps.results.database import chosen_database, results_in
from elastream_lab.apps.results.table import Table
from elastream_lab.apps.words.counts import COUNTS, STORED, WORDS, add_count, count_words, split_words
from elastream_lab.apps.words.payload import word_payload

MOST_TOP = 1000
"""Each part of the words keeps so many in its state, which is written whole whenever one of them changes."""

PARTED = parse_schema("word string, count long, part long")
BEST = parse_schema("best array<struct<word:string,count:long>>")


def topology(
    arrivals: Arrivals | None = None,
    *,
    payload: str | None = None,
    database: str | None = None,
    service_ms: float = 0.0,
    grouping: str = "fields",
    replicas: int = 4,
    zipf: float = 1.0,
    vocabulary: int = 5000,
    top: int = 10,
) -> Topology:
    """`payload` is a text; without it words are drawn from `vocabulary` ones, the r-th as frequent as 1 / r**`zipf`.

    `database` is a file for SQLite, or postgresql://user:password@host:port/name. `service_ms` is added to the service
    of every tuple in every operator. `grouping` is the one in front of `count`; `redirection` is in front of `rank`, too. `top` is how many words are kept.
    """
    if not 1 <= top <= MOST_TOP:
        raise SettingError(f"top must be 1..{MOST_TOP} words, got {top!r}")
    each = service(grouping, replicas, service_ms, key="word")
    arrivals = arrivals or usual_arrivals()
    make = word_payload(payload, arrivals.keys, zipf=zipf, vocabulary=vocabulary)
    merge = results_in(chosen_database(database, "top-n"), Table("top_words", STORED, greatest="count", best=top))
    app = Topology("top-n")
    text = app.source("text", sources.replay(arrivals, "id long, raw string", make))
    words = text.batch("reader", each.of(split_words), schema=WORDS, **each.sizes)
    counted = add_count(words, each, count_in_parts, PARTED)
    # Parts are as skewed as the words in them.
    parts = counted.key_by("part", redirect=each.grouping.redirects)
    ranked = parts.process("rank", each.of(Rank(top)), mode="arrow", state=BEST, schema=COUNTS, **each.sizes)
    ranked.sink("merge", each.of(merge), grouping=groupings.global_, **each.sizes)
    return app


def count_in_parts(batch: pa.RecordBatch, known: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Counts of words, each with the part that its word belongs to: there are as many as key groups."""
    counted, totals = count_words(batch, known)
    return counted.append_column("part", pa.array(groups_of(counted, ("word",)))), totals


@dataclass(frozen=True)
class Rank:
    """Keeps the best words of every part, and gives those of them whose counts have changed."""

    top: int

    def __call__(self, batch: pa.RecordBatch, known: pa.RecordBatch) -> tuple[pa.Table, pa.RecordBatch]:
        boards: dict[int, dict[str, int]] = {
            row["part"]: {entry["word"]: entry["count"] for entry in row["best"] or ()} for row in known.to_pylist()
        }
        by_word = pa.Table.from_batches([batch]).group_by(["part", "word"], use_threads=False)
        newest = by_word.aggregate([("count", "max"), (DUE, "min")]).select(["part", "word", "count_max", f"{DUE}_min"])
        rows = list(zip(*(column.to_pylist() for column in newest.columns[:3]), strict=True))
        grown = []
        for part, word, count in rows:
            grown.append(count > boards[part].get(word, 0))
            if grown[-1]:
                boards[part][word] = count
        boards = {part: best_of(board, self.top) for part, board in boards.items()}
        changed = [grew and word in boards[part] for grew, (part, word, _) in zip(grown, rows, strict=True)]
        given = (
            newest.filter(pa.array(changed, pa.bool_())).drop_columns(["part"]).rename_columns(["word", "count", DUE])
        )
        best = [[{"word": word, "count": count} for word, count in board.items()] for board in boards.values()]
        return given, pa.RecordBatch.from_arrays([pa.array(list(boards)), pa.array(best)], names=["part", "best"])


def best_of(board: dict[str, int], top: int) -> dict[str, int]:
    """The words with the greatest counts; of equal ones, the first by alphabet."""
    return dict(sorted(board.items(), key=lambda entry: (-entry[1], entry[0]))[:top])
