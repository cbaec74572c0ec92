"""AI-SPS, the adaptability index (Hidalgo, Rosas, Vasquez, Wladdimiro 2018): how well a system recovers from spikes.

A curve enters: the input, and the inverse of what is queued. After a spike the inverse queue falls to a minimum and climbs
to a new stable state. K_s says how near this is to the one before the spike, tau how long the climb took; the index puts
both on a scale from 0 to 9, on which 6 and more means that the system adapts well. With phi fixed at 15 degrees, as in the
paper, nothing can have more than `CEILING`. docs/decisions/012 defines the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from elastream.report.scores.spikes import Spike, find_spikes

Floats = npt.NDArray[np.float64]

STEP_S = 0.1
STATE_S = 2.0
"""A stable state is a mean over this time."""
PHI_DEGREES = 15.0
ADAPTS_WELL = 6.0
ONE_TUPLE = 1.5
"""A mean queue below this is one tuple: one more would halve K_s."""

_STATE = round(STATE_S / STEP_S)
_LASTS_IN_SPIKE, _LASTS_AFTER = 5 * _STATE, 15 * _STATE
"""A state is stable if it lasts so many steps, and as long as it took to get there. A queue that drains at an even pace
has an inverse that hardly moves at first: when the spike is over there is time to see that."""
_SAME = 0.05
"""Means that differ by less are the same state."""
_ARRIVED = 0.01
"""The climb is over when this share of it is left."""
_SMOOTH = 5
"""Steps over which a curve is smoothed whose noise would hide the end of the climb."""


def index_of(k_s: float, tau_s: float, phi: float = PHI_DEGREES) -> float:
    """Equation 3, kept on its scale."""
    return min(9.0, max(0.0, 3.751 * k_s - 0.137 * tau_s + 0.099 * phi + 1.631))


CEILING = round(index_of(1.0, 0.0), 3)


@dataclass(frozen=True)
class Curve:
    """A run as the index sees it, ten times a second."""

    t_s: Floats
    input_per_s: Floats
    inverse_queue: Floats
    """1 / queued. An empty queue counts as one tuple, so that this is 1 at most."""


@dataclass(frozen=True)
class Recovery:
    """What one spike did to the queues."""

    onset_s: float
    end_s: float
    """Where the input is back to normal; the end of the curve if it never is."""
    first_level: float
    """The inverse of the mean queue in the two seconds before the spike."""
    minimum_s: float
    minimum_level: float
    stable_s: float
    stable_level: float
    k_s: float
    tau_s: float
    index: float | None
    """None if the spike is not judged."""
    settled: bool
    """False if the curve ends before a new stable state: tau is then as long as was seen, and it was longer."""
    injected: bool = False
    """Somebody put the spike onto the input; else it was found there."""
    not_judged: str = ""
    """Why it says nothing of the system; empty if it is judged."""


@dataclass(frozen=True)
class Adaptability:
    """The index of a run: of the mean K_s and the mean tau of the spikes that are judged."""

    index: float | None
    k_s: float | None
    tau_s: float | None
    recoveries: tuple[Recovery, ...]
    reason: str = ""
    """Why there is no index."""
    phi: float = PHI_DEGREES
    ceiling: float = CEILING
    """The index of a queue that no spike moves: there is no higher one with this phi."""


def make_curve(t_s: Floats, events: Floats, queued: Floats) -> Curve:
    """Samples at any times: `events` came in since the sample before, `queued` wait at that moment.

    What happens between two samples is interpolated.
    """
    start = t_s[0] - (t_s[1] - t_s[0]) if len(t_s) > 1 else t_s[0] - STEP_S
    steps = max(1, round((t_s[-1] - start) / STEP_S))
    grid = start + STEP_S * np.arange(steps + 1)
    arrived = np.interp(grid, np.append(start, t_s), np.append(0.0, np.cumsum(events)))
    return Curve(grid[1:], np.diff(arrived) / STEP_S, 1 / np.maximum(np.interp(grid[1:], t_s, queued), 1.0))


def adaptability(curve: Curve, injected: Sequence[tuple[float, float]] = ()) -> Adaptability:
    """Every spike of the curve. Those whose recoveries overlap are one disturbance, judged from the first to the last.

    `injected` are the seconds from and to which spikes were put onto the input; they count whether they can be seen in it
    or not. Queues that run empty when nothing comes any more are no stable state: the curve ends with its input.
    """
    came = np.flatnonzero(curve.input_per_s)
    last = int(came[-1]) + 1 if len(came) else 0
    curve = Curve(curve.t_s[:last], curve.input_per_s[:last], curve.inverse_queue[:last])
    spikes = _all_spikes(curve, injected)
    if not spikes:
        return Adaptability(None, None, None, (), "the input has no spike: nothing to adapt to")
    recoveries: list[Recovery] = []
    begun: Spike | None = None
    for spike, following in pairwise([*spikes, None]):
        assert spike is not None
        begun = Spike(begun.onset, spike.end, begun.injected or spike.injected) if begun else spike
        recovery = _recovery(curve, begun, following.onset if following else len(curve.t_s))
        if recovery.settled or following is None:
            recoveries.append(recovery)
            begun = None
    judged = [recovery for recovery in recoveries if not recovery.not_judged]
    if not judged:
        reasons = ", ".join(dict.fromkeys(recovery.not_judged for recovery in recoveries))
        return Adaptability(None, None, None, tuple(recoveries), f"no spike that can be judged: {reasons}")
    k_s = float(np.mean([recovery.k_s for recovery in judged]))
    tau_s = float(np.mean([recovery.tau_s for recovery in judged]))
    return Adaptability(index_of(k_s, tau_s), k_s, tau_s, tuple(recoveries))


def _all_spikes(curve: Curve, injected: Sequence[tuple[float, float]]) -> list[Spike]:
    """Those that were put there, and those that are found beside them, in the order of time."""
    known = []
    for from_s, to_s in injected:
        onset, end = (int(place) for place in np.searchsorted(curve.t_s, (from_s + 1e-6, to_s + 1e-6)))
        # Without a state before it there is nothing to compare with.
        if _STATE <= onset < len(curve.t_s):
            known.append(Spike(onset, max(onset + 1, end), injected=True))
    found = [
        spike
        for spike in find_spikes(curve.input_per_s, STEP_S)
        if not any(spike.onset <= other.end and other.onset <= spike.end for other in known)
    ]
    return sorted([*known, *found], key=lambda spike: spike.onset)


def _recovery(curve: Curve, spike: Spike, stop: int) -> Recovery:
    """`stop` is where the next spike begins."""
    level = curve.inverse_queue[:stop]
    before = level[max(0, spike.onset - _STATE) : spike.onset]
    first = _state(before)
    lowest: int
    stable: int | None
    if np.min(level[spike.onset : spike.end + _STATE]) >= (1 - _SAME) * np.min(before):
        # The queue does not move: it is where it was, all the time.
        lowest = arrived = stable = spike.onset
        state, steps = first, 0
    else:
        lowest, stable = _minimum_and_stable(level, spike)
        if stable is None:
            arrived = stop - 1
            state = _state(level[max(lowest, stop - _STATE) :])
            # A queue that grows to the end has not begun to recover: all of the time since the spike counts.
            steps = arrived - (lowest if lowest < stop - _STATE else spike.onset)
        else:
            arrived = _arrival(level, lowest, stable)
            state = _state(level[arrived : arrived + _STATE])
            steps = arrived - lowest
    # Until here there was time to see it, whether the input came back or not.
    seen = len(curve.t_s) - (spike.end if spike.end < len(curve.t_s) else spike.onset)
    cut_off = seen < _LASTS_AFTER and (stable is None or (not steps and spike.end >= len(curve.t_s)))
    not_judged = ""
    if 1 / first < ONE_TUPLE:
        not_judged = "no more than one tuple waited before the spike"
    elif cut_off:
        not_judged = "the run ends before the recovery"
    k_s, tau_s = min(1.0, state / first), steps * STEP_S
    return Recovery(
        onset_s=float(curve.t_s[spike.onset]),
        end_s=float(curve.t_s[min(spike.end, len(curve.t_s) - 1)]),
        first_level=first,
        minimum_s=float(curve.t_s[lowest]),
        minimum_level=float(level[lowest]),
        stable_s=float(curve.t_s[arrived]),
        stable_level=state,
        k_s=k_s,
        tau_s=tau_s,
        index=None if not_judged else index_of(k_s, tau_s),
        settled=stable is not None,
        injected=spike.injected,
        not_judged=not_judged,
    )


def _minimum_and_stable(level: Floats, spike: Spike) -> tuple[int, int | None]:
    """Where the climb begins, and where it is over; None: it is not over when the curve is."""
    stop = len(level)
    lowest = _last_minimum(level, spike.onset, min(stop, spike.end + _STATE))
    stable = _first_stable(level, lowest, spike.end)
    while stable is not None:
        # The queue may grow on after a pause: then the minimum is still to come.
        lower = _last_minimum(level, spike.onset, min(stop, stable + _LASTS_IN_SPIKE))
        if lower == lowest:
            return lowest, stable
        lowest, stable = lower, _first_stable(level, lower, spike.end)
    return _last_minimum(level, spike.onset, stop), None


def _state(level: Floats) -> float:
    """The inverse of the mean queue, as the paper has it: the mean of the inverse is that of the shortest moments."""
    return 1 / float(np.mean(1 / level))


def _last_minimum(level: Floats, start: int, stop: int) -> int:
    """Of several that are equally low the last: a queue that stays full has not begun to recover."""
    return stop - 1 - int(np.argmin(level[start:stop][::-1]))


def _first_stable(level: Floats, lowest: int, spike_end: int) -> int | None:
    """Where the mean over two seconds is that of a longer time to come: as long as it took to get there."""
    starts = np.arange(lowest, len(level) - _STATE + 1)
    if not len(starts):
        return None
    sums = np.append(0.0, np.cumsum(level))
    near = (sums[starts + _STATE] - sums[starts]) / _STATE
    in_spike = starts + _LASTS_IN_SPIKE <= spike_end
    lasts = np.maximum(np.where(in_spike, _LASTS_IN_SPIKE, _LASTS_AFTER), starts - lowest)
    ends = np.minimum(len(level), starts + lasts)
    far = (sums[ends] - sums[starts]) / (ends - starts)
    # At the very end there is nothing left to compare with, and a curve that still climbs looks stable there.
    same = (np.abs(far - near) <= _SAME * near) & (ends - starts >= 2 * _STATE)
    return int(starts[np.argmax(same)]) if same.any() else None


def _arrival(level: Floats, lowest: int, stable: int) -> int:
    """Where the climb ends: at a hundredth of it below the stable level, or as near to that as noise lets one see."""
    stretch = level[lowest : stable + max(_LASTS_IN_SPIKE, stable - lowest)]
    # The second half of what follows: the first may still hold the end of the climb.
    ahead = stretch[(len(stretch) + stable - lowest) // 2 :]
    state = float(np.mean(ahead))
    climb = state - float(stretch[0])
    if climb <= 0:
        return stable
    noise = float(np.median(np.abs(ahead - np.median(ahead)))) * 1.48
    if noise > _ARRIVED * climb and len(stretch) > _SMOOTH:
        padded = np.pad(stretch, _SMOOTH // 2, mode="edge")
        stretch = np.convolve(padded, np.full(_SMOOTH, 1 / _SMOOTH), mode="valid")
        noise /= np.sqrt(_SMOOTH)
    reached = stretch >= state - max(_ARRIVED * climb, min(noise, climb / 4))
    return lowest + int(np.argmax(reached)) if reached.any() else stable
