"""What chaos is told about the tuples of a run: how many have arrived meanwhile, and what became of them in the end."""

from dataclasses import dataclass
from typing import Any, Protocol

from elastream.lanes import LedgerState


@dataclass(frozen=True)
class Verdict:
    """The tuples of a run that is over."""

    expected: int
    """Tuples that must have arrived."""
    lost: int
    doubled: int
    changed: int
    """Deliveries that came again with other rows."""
    repeated: int | None
    """Deliveries that came again with the same rows, as they may after a crash; None when nobody counts them."""
    poisoned: int | None
    """Tuples that must be in the dead letters; None when that is not known."""


class Witness(Protocol):
    """Counts tuples from outside the run."""

    between: int
    """Tuples that must arrive between two faults."""

    @property
    def expected(self) -> int | None:
        """How many must arrive in the end, as far as is known now."""
        ...

    def look(self, said: dict[str, Any]) -> int:
        """How many have arrived; `said` is the newest message of the driver."""
        ...

    def feed(self) -> None:
        """Give the run more to read when it has little left."""
        ...

    def wrong(self) -> int:
        """Tuples and deliveries known to be wrong by now."""
        ...

    def is_settled(self, said: dict[str, Any]) -> bool:
        """True when the run may be stopped and judged: everything that must arrive has."""
        ...

    def verdict(self, state: LedgerState, *, drained: bool) -> Verdict:
        """`state` is what the ledger says at the end; `drained` when the sources were exhausted and nothing waited."""
        ...
