"""Whether the usual load may speak: the load is as usual, or is not, or nothing is usual at this hour."""

from dataclasses import dataclass

from elastream.policies.multi_level.usual import Usual

TOLERANCE = 0.3
"""The load is as usual within this part of the usual rate."""

MORE = 1.1
"""It is made ready for so much more than is usual: a slot's mean is less than its peak."""


@dataclass(frozen=True)
class Forecast:
    """The rate to be ready for, or None with the reason why there is none."""

    per_s: float | None
    words: str
    alert: str = ""
    """Said when the usual load stops to hold, and when it holds again."""


class Foresight:
    """Follows the usual load as long as the load does."""

    def __init__(self, usual: Usual, looks: int) -> None:
        self._usual = usual
        self._looks = looks
        self._inside = looks
        """Observations in a row that were as usual."""
        self._holds = True
        self._known = True

    def look(self, now_s: float, load_per_s: float, lead_s: float) -> Forecast:
        """The highest usual rate from now until `lead_s` from now."""
        usual, ahead = self._usual.at(now_s), self._usual.most(now_s, now_s + lead_s)
        if usual is None or ahead is None:
            when = "at this hour" if usual is None else f"within {lead_s:.0f} s"
            said = f"the usual load has a gap {when}"
            alert = "" if not self._known else f"{said}: reactive until it knows again"
            self._known = False
            return Forecast(None, said, alert)
        self._known = True
        off = abs(load_per_s - usual) > TOLERANCE * usual
        self._inside = 0 if off else self._inside + 1
        if off or self._inside < self._looks:
            said = f"{load_per_s:,.0f}/s is not as usual, {usual:,.0f}/s"
            alert = f"traffic is not as usual: {load_per_s:,.0f}/s where {usual:,.0f}/s is usual; reactive from here on"
            alert, self._holds = (alert if self._holds else ""), False
            return Forecast(None, said, alert)
        alert = "" if self._holds else f"traffic is as usual again: {load_per_s:,.0f}/s, {usual:,.0f}/s is usual"
        self._holds = True
        return Forecast(MORE * ahead, f"{ahead:,.0f}/s is usual within {lead_s:.0f} s", alert)
