"""Flow records in lines of text: records enter and lines leave, or the other way round. The parser of the application `ddos`."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastream.topology import DUE, parse_schema
from elastream_lab.apps.ddos.traffic import RECORD

FLOW = parse_schema(
    "at timestamp, source string, destination string, protocol string, port string, packets long, bytes long, "
    "gap_ms double, label string"
)
"""A parsed flow. `gap_ms` is the mean time between two of its packets."""


def lines_of(records: pa.RecordBatch) -> pa.Array:
    """One line per record, with commas between the cells: as an exporter writes them."""
    texts = [records.column(0).cast(pa.timestamp("us")).cast(pa.string())]
    texts += [column.cast(pa.string()) for column in records.columns[1:]]
    return pc.binary_join_element_wise(*texts, ",")


def parse_flows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Flows of the lines in `raw`. One that is no record raises, so that it goes to the dead letters."""
    raw = batch.column("raw")
    cells = pc.split_pattern(raw, ",")
    lengths = np.asarray(pc.list_value_length(cells))
    if (lengths != len(RECORD)).any():
        place = int(np.flatnonzero(lengths != len(RECORD))[0])
        raise ValueError(f"expected {', '.join(RECORD.names)}, got {lengths[place]} cells: {raw[place].as_py()!r:.200}")
    table = cells.flatten()
    text = {name: table[place :: len(RECORD)] for place, name in enumerate(RECORD.names)}
    flows = flows_of(pa.RecordBatch.from_pydict({name: _read(text[name], name) for name in RECORD.names}))
    return flows.append_column(DUE, batch.column(DUE)) if DUE in batch.schema.names else flows


def flows_of(records: pa.RecordBatch) -> pa.RecordBatch:
    """Records as the rest of the application sees them."""
    packets, ms = records.column("packets"), records.column("ms")
    gaps = pc.divide(ms.cast(pa.float64()), pc.max_element_wise(pc.subtract(packets, 1), 1).cast(pa.float64()))
    columns = {"at": records.column("time"), "port": records.column("port").cast(pa.string()), "gap_ms": gaps}
    return pa.RecordBatch.from_arrays(
        [columns[name] if name in columns else records.column(name) for name in FLOW.names], schema=FLOW
    )


def _read(cells: pa.Array, name: str) -> pa.Array:
    kind = RECORD.field(name).type
    try:
        if pa.types.is_timestamp(kind):
            return cells.cast(pa.timestamp("us")).cast(kind)
        return cells.cast(kind)
    except pa.ArrowInvalid as error:
        raise ValueError(f"column {name}: {error}") from None
