"""How well windows with attacks are told from others: verdicts and labels enter; precision and recall leave."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Detection:
    """Counts of windows."""

    windows: int
    attacked: int
    """Those with a flow of an attack."""
    flagged: int
    found: int
    """Attacked and flagged."""

    @property
    def precision(self) -> float:
        """The share of the flagged that were attacked; nan where none is flagged."""
        return self.found / self.flagged if self.flagged else float("nan")

    @property
    def recall(self) -> float:
        """The share of the attacked that were flagged; nan where none was attacked."""
        return self.found / self.attacked if self.attacked else float("nan")

    def __str__(self) -> str:
        counts = (
            f"{self.windows} windows, {self.attacked} attacked, {self.flagged} flagged, {self.found} of these rightly"
        )
        return f"{counts}: precision {self.precision:.2f}, recall {self.recall:.2f}"


def detection(verdicts: Iterable[tuple[bool, str]]) -> Detection:
    """Of every window whether it is flagged, and its label, which is empty where nobody attacked."""
    pairs = [(bool(flagged), bool(label)) for flagged, label in verdicts]
    attacked, flagged = sum(label for _, label in pairs), sum(flagged for flagged, _ in pairs)
    return Detection(len(pairs), attacked, flagged, sum(flagged and label for flagged, label in pairs))
