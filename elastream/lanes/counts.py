"""Counts per operator: what a tick adds to them, and the totals since a base began."""

import msgspec


class OperatorCounts(msgspec.Struct, array_like=True, gc=False):
    """Tuples and seconds of one operator. Times are those of its replicas together."""

    received: int = 0
    """Tuples put into its lanes."""
    processed: int = 0
    emitted: int = 0
    """Tuples that left its function."""
    failed: int = 0
    late: int = 0
    """Dropped because they were older than `t_out_s`, or than the watermark of a window."""
    overflowed: int = 0
    """Dropped because their lane was full, or discarded."""
    entered: int = 0
    """Tuples that entered the topology here: a source made them, or an operator gave more than it took."""
    finished: int = 0
    """Tuples that left the topology here."""
    busy_s: float = 0.0
    cpu_s: float = 0.0
    expired: int = 0
    """Of dead letters, which have been counted as failed: removed unread, because they were too many or too old."""

    @property
    def dropped(self) -> int:
        return self.failed + self.late + self.overflowed

    def add(self, other: "OperatorCounts") -> None:
        self.received += other.received
        self.processed += other.processed
        self.emitted += other.emitted
        self.failed += other.failed
        self.late += other.late
        self.overflowed += other.overflowed
        self.entered += other.entered
        self.finished += other.finished
        self.busy_s += other.busy_s
        self.cpu_s += other.cpu_s
        self.expired += other.expired
