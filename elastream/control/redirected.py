"""The record of a redirection: tuples go to other replicas because of load, before anybody asks for more of them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Redirected:
    """A change of the lanes that tuples of one operator go to (Dr-Stream, equation 11)."""

    operator: str
    at_s: float
    """Wall time."""
    lb: float
    """The load balance that was out of range, or back in it."""
    reason: str
    groups: int = 0
    """Key groups that shall go to another lane."""
    split: int = 0
    """Lanes that one key's tuples are dealt out to from now on; 0: no key was split."""
