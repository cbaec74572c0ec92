"""Numbers as a person writes them, and how a run went in one sentence."""

import math
import shlex
from collections.abc import Mapping
from typing import Any

from elastream.report.scores.adaptability import ADAPTS_WELL, CEILING

NONE = "–"
"""Where there is no number."""

_SPACE = "\u00a0"


def count(value: float | None) -> str:
    """1,234,567; with a decimal only below ten."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:.1f}" if abs(value) < 10 and value != round(value) else f"{value:,.0f}"


def figure(value: float | None, digits: int = 2) -> str:
    """With so many decimals."""
    return NONE if value is None or not math.isfinite(value) else f"{value:,.{digits}f}"


def share(value: float | None) -> str:
    """0.573 is 57 %. What is not quite all, or not quite nothing, is never rounded to it."""
    if value is None or not math.isfinite(value):
        return NONE
    percent = value * 100
    if 99 < percent < 100:
        words = f"{min(percent, 99.99):.2f}"
    elif 0 < abs(percent) < 1:
        words = "<0.01" if abs(percent) < 0.01 else f"{percent:.2f}"
    else:
        words = f"{percent:.0f}"
    return f"{words}{_SPACE}%"


def span(seconds: float | None) -> str:
    """A length of time in the unit that fits: 0.4 ms, 250 ms, 1.79 s, 3 min 20 s."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 0.9995:
        ms = seconds * 1e3
        return f"{ms:.1f}{_SPACE}ms" if 0 < ms < 10 else f"{ms:.0f}{_SPACE}ms"
    if seconds < 99.5:
        return f"{seconds:.2f}{_SPACE}s" if seconds < 9.995 else f"{seconds:.1f}{_SPACE}s".replace(".0", "")
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (rest if not hours else 0, "s")]
    return " ".join(f"{number}{_SPACE}{unit}" for number, unit in parts if number)


def clock(seconds: float) -> str:
    """A time in the run: 13.6 s, 12:05, 1:02:05."""
    if seconds < 120:
        return f"{seconds:.1f}{_SPACE}s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def plural(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def index_words(ai_sps: Mapping[str, Any], busy: Mapping[str, Any] | None) -> list[str]:
    """The adaptability index in words: as the paper has it, and of what waits for a busy replica."""
    index, highest = ai_sps.get("index"), ai_sps.get("ceiling", CEILING)
    if index is None:
        said = [f"AI-SPS: none, {ai_sps.get('reason') or 'not measured'}."]
    else:
        good = "adapts well" if index >= ADAPTS_WELL else f"below {ADAPTS_WELL:g}, it does not adapt well"
        said = [
            f"AI-SPS {figure(index, 3)}: {good}. The highest that there is, of a queue that no spike moves, is {highest:g}."
        ]
    if busy is not None:
        other = busy.get("index")
        words = f"none, {busy.get('reason')}" if other is None else figure(other, 3)
        apart = f", {other - index:+.3f}" if other is not None and index is not None else ""
        said.append(f"Of the tuples that wait for a busy replica only: {words}{apart}.")
    left = sum(bool(spike.get("not_judged")) for spike in ai_sps.get("spikes") or ())
    if left and index is not None:
        said.append(f"{plural(left, 'spike')} of {len(ai_sps['spikes'])} not judged.")
    return said


def letters_command(report: Mapping[str, Any]) -> str:
    """How to look at the dead letters of a run; empty when there are none."""
    base, letters = report.get("base"), (report.get("events") or {}).get("dead_letters", 0)
    return f"elastream letters {shlex.quote(base)}" if base and letters else ""


def verdict(report: Mapping[str, Any]) -> str:
    """What became of the tuples, and whether the replicas followed them."""
    return f"{_tuples(report.get('events') or {})}; {_replicas(report)}."


def _tuples(events: Mapping[str, int]) -> str:
    entered, finished = events.get("entered", 0), events.get("finished", 0)
    dropped, queued, duplicates, created, dead_letters = (
        events.get(name, 0) for name in ("dropped", "queued", "duplicates", "created", "dead_letters")
    )
    if not entered:
        return "No tuple was read"
    begun = f"{count(entered - created)} tuples read" + (f" and {count(created)} created" if created else "")
    said = [f"{begun}, {'all' if finished == entered else count(finished)} finished"]
    if queued:
        said.append(f"{count(queued)} still waited at the end")
    if dead_letters:
        said.append(f"{count(dead_letters)} {'is a dead letter' if dead_letters == 1 else 'are dead letters'}")
    said.append(f"{count(dropped)} {'was' if dropped == 1 else 'were'} dropped" if dropped else "nothing dropped")
    if duplicates:
        said.append(f"{count(duplicates)} came twice")
    return "; ".join(said)


def _replicas(report: Mapping[str, Any]) -> str:
    saved = report.get("saved_resources", 0.0)
    fewer = f"{share(saved)} fewer than sized for the peak" if saved > 0 else "no fewer than sized for the peak"
    if report.get("rescales"):
        return f"replicas followed the load: {fewer}"
    return f"the replicas stayed as they were: {fewer}"
