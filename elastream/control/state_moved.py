"""The receipt of a change of replicas where something is remembered of keys: what moved, and that it is the same."""

from dataclasses import dataclass


@dataclass
class StateMoved:
    """What became of the state of an operator when its replicas changed."""

    operator: str
    replicas: int
    began_s: float
    """Wall time."""
    groups: int = 0
    """Key groups that changed hands."""
    between_hosts: int = 0
    """Of these, those whose state went to another host; the other figures are of them."""
    keys: int = 0
    bytes: int = 0
    checksum_before: int = 0
    checksum_after: int = 0
    waited_ms: float = 0.0
    """The longest time in which a key could not be served."""
    took_ms: float = 0.0
    problem: str = ""
    number: int = 0
    """Changes of a run that are over are counted from 1 on."""
