"""Flow records in CSV files of several makers: a header enters; which column is which leaves.

There is no one format. Names of nfdump, of IPFIX exporters and of honeypots are known; `time,source,destination,...` are ours.
"""

from collections.abc import Sequence

from elastream.errors import SettingError

NAMES = {
    "time": ("time", "datetime", "timestamp", "ts", "first", "flowstart"),
    "source": ("source", "src", "srcaddr", "src_ip", "sa", "sourceipv4address"),
    "destination": ("destination", "dst", "dstaddr", "dst_ip", "da", "destinationipv4address", "host"),
    "protocol": ("protocol", "proto", "pr", "protocolidentifier"),
    "port": ("port", "dpt", "dstport", "dst_port", "dp", "destinationtransportport"),
    "source_port": ("source_port", "spt", "srcport", "src_port", "sp", "sourcetransportport"),
    "packets": ("packets", "pkts", "ipkt", "packetdeltacount"),
    "bytes": ("bytes", "octets", "ibyt", "octetdeltacount"),
    "ms": ("ms", "duration_ms", "flowdurationmilliseconds"),
    "label": ("label", "attack", "class"),
}
"""Columns of a record, and what they are called, in small letters."""

NEEDED = ("time", "source", "destination", "protocol", "port")
DEFAULTS = {"source_port": "0", "packets": "1", "bytes": "0", "ms": "0", "label": ""}
"""Of columns that a file may lack, or whose cells may be empty."""


def find_columns(path: str, header: Sequence[str]) -> dict[str, str]:
    """Per column of a record that the file has, its name there."""
    lower = {name.strip().lower(): name for name in header}
    found = {name: next((lower[word] for word in words if word in lower), None) for name, words in NAMES.items()}
    for name in NEEDED:
        if found[name] is None:
            raise SettingError(
                f"payload {path}, line 1: expected a column {name} (or {', '.join(NAMES[name][1:])}), got {', '.join(header)!r:.100}"
            )
    return {name: column for name, column in found.items() if column is not None}
