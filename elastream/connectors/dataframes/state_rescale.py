"""Rescaling the state of dataframe operators: a checkpoint that stands still and a number of partitions enter, a receipt leaves.

Spark repartitions it by a batch of its own, which has the same state in other partitions. Everything is read before and
after; unless both agree, and also when this process dies in between, the batch is taken back.
"""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from elastream.connectors.dataframes.checkpoint import Checkpoint
from elastream.engine.spark.java_errors import java_reason
from elastream.engine.spark.session import FRAME_SETTINGS, settings_of_query
from elastream.errors import RunFailed
from elastream.lanes import Store
from elastream.lanes.sealed import seal, unseal

UNFINISHED = "rescale.json"
"""In the base while a rescale is under way: the files that were in the checkpoint before."""


@dataclass(frozen=True)
class StoreReceipt:
    """One store of one of Spark's operators. A checksum does not depend on the order of the rows."""

    operator: int
    """Its number in Spark's checkpoint."""
    kind: str
    """What Spark calls it."""
    store: str
    rows_before: int
    rows_after: int
    checksum_before: int
    checksum_after: int

    @property
    def is_whole(self) -> bool:
        return (self.rows_before, self.checksum_before) == (self.rows_after, self.checksum_after)


@dataclass(frozen=True)
class StateReceipt:
    """What a rescale did. One query has one number of partitions, so all operators with state are in it."""

    before: int
    after: int
    """Partitions, as they are now."""
    stores: tuple[StoreReceipt, ...]
    pause_ms: float
    """From the end of the last tick before to the end of the first tick after it."""
    problem: str = ""
    """Why it was not done. Then the state is as it was, and the run goes on."""


Counts = dict[tuple[int, str, str], tuple[int, int]]
"""By operator, kind and store: rows and checksum."""


def rescale(
    spark: SparkSession, store: Store, checkpoint: Checkpoint, batch: int, partitions: int, committed: bool
) -> StateReceipt:
    """`batch` is the last one in the ledger, and must be committed by Spark too. A problem is in the receipt.

    Raises when the rescale can neither be ended nor taken back: what is written after that would be lost, for the next start
    takes it back together with the rescale.
    """
    if store.exists(UNFINISHED):
        raise RunFailed(
            "rescale_state: one before it was not ended; start again with the same base, which takes it back"
        )
    before = 0
    try:
        if not committed:
            return StateReceipt(0, 0, (), 0.0, f"Spark has not committed batch {batch}, which is in the ledger")
        before = checkpoint.partitions(batch)
        if before == partitions:
            return StateReceipt(before, partitions, (), 0.0)
        files = checkpoint.files()
    except Exception as error:
        return StateReceipt(before, before, (), 0.0, java_reason(error))
    try:
        store.write(UNFINISHED, seal("rescale", {"files": sorted(files)}))
        stores, problem = _rescaled(spark, checkpoint, batch, partitions)
        if problem:
            checkpoint.keep_only(files)
        store.delete([UNFINISHED])
    except Exception as error:
        raise RunFailed(
            f"rescale_state: could neither be ended nor taken back: {java_reason(error)}; mend that, then start again with the "
            "same base, which takes it back first"
        ) from None
    return StateReceipt(before, before if problem else partitions, stores, 0.0, problem)


def _rescaled(
    spark: SparkSession, checkpoint: Checkpoint, batch: int, partitions: int
) -> tuple[tuple[StoreReceipt, ...], str]:
    """What was counted, and what is wrong, if anything is."""
    try:
        # What is shuffled in counting is a row for each store.
        with settings_of_query(spark, FRAME_SETTINGS | {"spark.sql.shuffle.partitions": "1"}):
            before = count_state(spark, checkpoint, batch)
            repartition(spark, checkpoint, partitions)
            after = count_state(spark, checkpoint, None)
    except Exception as error:
        return (), java_reason(error)
    stores = tuple(
        StoreReceipt(*place, rows, after.get(place, (0, 0))[0], checksum, after.get(place, (0, 0))[1])
        for place, (rows, checksum) in before.items()
    )
    different = [f"{its.kind} {its.operator}" for its in stores if not its.is_whole]
    return stores, f"the state of {', '.join(different)} is not the same after it" if different else ""


def undo_unfinished(store: Store, checkpoint: Checkpoint) -> None:
    """A rescale was not ended, for its process died or its files could not be written: the checkpoint becomes what it was."""
    if store.exists(UNFINISHED):
        document = unseal("rescale", store.read(UNFINISHED), f"{store}/{UNFINISHED}")
        checkpoint.keep_only(set(document["files"]))
        store.delete([UNFINISHED])


def repartition(spark: SparkSession, checkpoint: Checkpoint, partitions: int) -> None:
    # A batch that Spark planned while we stopped it is not in the ledger: its sources will be read again.
    spark._streamingCheckpointManager.repartition(checkpoint.path, partitions, enforce_exactly_once_sink=False)


def count_state(spark: SparkSession, checkpoint: Checkpoint, batch: int | None) -> Counts:
    """Rows and checksum of every store after a batch, None being the last one."""
    known = spark.read.format("state-metadata").load(checkpoint.path)
    places = sorted(set(known.select("operatorId", "operatorName", "stateStoreName").collect()))
    frames = [_hashes(spark, checkpoint, batch, int(op), str(kind), str(name)) for op, kind, name in places]
    counts: Counts = {(int(op), str(kind), str(name)): (0, 0) for op, kind, name in places}
    if not frames:
        return counts
    together = frames[0]
    for frame in frames[1:]:
        together = together.union(frame)
    # Halves, because a sum of whole hashes does not fit into a long.
    sums = together.groupBy("operator", "kind", "store").agg(F.count("*"), F.sum("high"), F.sum("low"))
    for op, kind, name, rows, high, low in sums.collect():
        counts[op, kind, name] = rows, (high << 32) + low
    return counts


def _hashes(
    spark: SparkSession, checkpoint: Checkpoint, batch: int | None, operator: int, kind: str, store: str
) -> DataFrame:
    options: dict[str, Any] = {"operatorId": operator, "storeName": store, "_readAllColumnFamilies": "true"}
    if batch is not None:
        options["batchId"] = batch
    rows = spark.read.format("statestore").options(**options).load(checkpoint.path)
    hashed = F.xxhash64("column_family_name", "key_bytes", "value_bytes")
    return rows.select(
        F.lit(operator).alias("operator"),
        F.lit(kind).alias("kind"),
        F.lit(store).alias("store"),
        F.shiftright(hashed, 32).alias("high"),
        hashed.bitwiseAND(F.lit(0xFFFFFFFF)).alias("low"),
    )
