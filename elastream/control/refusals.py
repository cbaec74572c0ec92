"""Refusals of guards, each told once: a policy may state the same want many times a second."""

from elastream.control.proposal import Decision


class Refusals:
    """Tells new refusals from repeated ones: a policy may state the same want many times a second."""

    def __init__(self) -> None:
        self._guards: dict[str, tuple[str, ...]] = {}
        """Per operator, the guards that refused its last want."""

    def is_new(self, decision: Decision) -> bool:
        """True if guards changed a want, and other guards than the last time."""
        refused = decision.asked != decision.after
        guards = tuple(veto.partition(": ")[0] for veto in decision.vetoes) if refused else ()
        before = self._guards.get(decision.operator, ())
        self._guards[decision.operator] = guards
        return bool(guards) and guards != before
