"""Features of a window of traffic: what was counted by source, destination, port and protocol enters; one vector leaves.

How much there was (in logarithms, for a day spans an order of magnitude), and how it is spread: the number of values, their entropy,
and the share of the most frequent one. An attack changes how flows are spread even where it hardly changes how many there are.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Floats = npt.NDArray[np.float64]

DIMENSIONS = ("source", "destination", "port", "protocol")
"""What flows are counted by."""
SPREAD = ("keys", "flows", "n_log_n", "most")
"""Known of each dimension: how many values, their flows, the sum of n log n over them, and the most that one has."""
TOTALS = ("flows", "packets", "bytes", "gap_ms")
"""Known of the whole window."""

FEATURES = (
    *(f"log {name}" for name in TOTALS),
    *(f"{dimension} {what}" for dimension in DIMENSIONS for what in ("log count", "entropy", "largest share")),
)


def feature_rows(totals: Floats, spreads: Mapping[str, Floats]) -> Floats:
    """A row of features per window; `totals` has the columns of `TOTALS`, each of `spreads` those of `SPREAD`."""
    flows, packets, size, gap_ms = np.maximum(totals, 0.0).T
    columns = [np.log1p(flows), np.log1p(packets), np.log1p(size), np.log1p(gap_ms / np.maximum(flows, 1.0))]
    for dimension in DIMENSIONS:
        keys, each, n_log_n, most = spreads[dimension].T
        each = np.maximum(each, 1.0)
        columns += [np.log1p(keys), np.log(each) - n_log_n / each, most / each]
    return np.stack(columns, axis=1)


def window_features(flows: pa.Table, window_s: int) -> tuple[pa.Array, Floats, pa.Array]:
    """Of parsed flows: where each window begins in seconds since 1970, its features, and its label."""
    seconds = pc.divide(flows.column("at").cast(pa.int64()), window_s * 1_000_000)
    flows = flows.append_column("window", pc.multiply(seconds, window_s))
    sums = [([], "count_all"), ("packets", "sum"), ("bytes", "sum"), ("gap_ms", "sum"), ("label", "max")]
    whole = flows.group_by("window", use_threads=False).aggregate(sums).sort_by("window")
    windows = whole.column("window").combine_chunks()
    totals = np.stack(
        [
            np.asarray(whole.column(name), np.float64)
            for name in ("count_all", "packets_sum", "bytes_sum", "gap_ms_sum")
        ],
        axis=1,
    )
    spreads = {}
    for dimension in DIMENSIONS:
        counted = flows.group_by(["window", dimension], use_threads=False).aggregate([([], "count_all")])
        each = np.asarray(counted.column("count_all"), np.float64)
        place = np.asarray(pc.index_in(counted.column("window"), windows))
        most = np.zeros(len(windows))
        np.maximum.at(most, place, each)
        sums_of = [np.bincount(place, weights, len(windows)) for weights in (None, each, each * np.log(each))]
        spreads[dimension] = np.stack([*sums_of, most], axis=1)
    return windows, feature_rows(totals, spreads), whole.column("label_max").combine_chunks()
