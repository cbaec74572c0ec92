"""The pictures of the adaptability index, as in figure 7 of its paper: for each spike the way back to a stable state."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from elastream.report.pages.charts import Bracket, Chart, Line
from elastream.report.pages.words import clock, figure, span
from elastream.report.scores.adaptability import Curve
from elastream.report.thinning import outline

MOST_PICTURES = 12

_MARGIN_S = 4.0
_POINTS = 400


def recovery_charts(ai_sps: Mapping[str, Any], curve: Curve | None) -> list[Chart]:
    """One for each of the first spikes."""
    spikes = ai_sps.get("spikes") or []
    if curve is None or not len(curve.t_s):
        return []
    return [_picture(number, spike, curve) for number, spike in enumerate(spikes[:MOST_PICTURES], 1)]


def _picture(number: int, spike: Mapping[str, Any], curve: Curve) -> Chart:
    first, stable_s, level, tau_s = (spike[name] for name in ("first_level", "stable_s", "stable_level", "tau_s"))
    from_s = max(float(curve.t_s[0]), spike["onset_s"] - _MARGIN_S)
    until_s = min(float(curve.t_s[-1]), max(spike["end_s"], stable_s) + 2 * _MARGIN_S)
    seen = (curve.t_s >= from_s) & (curve.t_s <= until_s)
    t, arrived, inverse = curve.t_s[seen], curve.input_per_s[seen], curve.inverse_queue[seen]
    words = [f"Kₛ {figure(spike['k_s'])}", f"τ {span(tau_s)}"]
    words.append(f"not judged: {spike['not_judged']}" if spike.get("not_judged") else f"index {figure(spike['index'])}")
    if not spike.get("settled", True):
        words.append("no stable state before the end: it took longer than was seen")
    return Chart(
        f"recovery-{number}",
        f"Spike at {clock(spike['onset_s'])}",
        " · ".join(words),
        "inverse",
        (
            Line("input per second", *outline(t, arrived, _POINTS), ink="input", dash=1, right=True),
            Line("1 / queued", *outline(t, inverse, _POINTS), ink="inverse"),
            Line(
                "recovery", *_points((spike["minimum_s"], spike["minimum_level"]), (stable_s, level)), ink="transient"
            ),
            Line(
                "stable before", *_points((from_s, first), (max(from_s, spike["onset_s"]), first)), ink="before", dash=2
            ),
            Line("stable again", *_points((stable_s, level), (max(until_s, stable_s), level)), ink="stable"),
        ),
        until_s,
        from_s,
        bracket=Bracket(stable_s - tau_s, stable_s, f"τ {span(tau_s)}"),
        small=True,
    )


def _points(*points: tuple[float, float]) -> tuple[Any, Any]:
    both = np.array(points, dtype=np.float64)
    return both[:, 0], both[:, 1]
