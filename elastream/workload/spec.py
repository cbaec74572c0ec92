"""A workload in words, as on the command line and in suites: a word and spikes enter, arrivals leave."""

from collections.abc import Callable, Iterable

import numpy as np

from elastream.errors import SettingError
from elastream.workload.arrivals import Arrivals, paced
from elastream.workload.data_spikes import DataSpike
from elastream.workload.random_spikes import random_spikes
from elastream.workload.shapes import constant, daily, ramp, sine, steps
from elastream.workload.spikes import Spike, VolumeSpike, check_seed, with_popularity, with_spikes
from elastream.workload.traces import find_trace, load_trace, trace_names, where_looked
from elastream.workload.words import read_pairs, read_parameters, read_value, suggestion

SYNTAX = """\
A workload is a trace that ships with the package (elastream trace list), a CSV
file with t_seconds,events and a constant step, or a shape with its parameters.
A file is looked for here, and in the directory that $ELASTREAM_TRACES names.
Rates are tuples per second; seconds is the length of the whole:

  constant:per_second=200,seconds=60
  ramp:start=100,end=900,seconds=60
  steps:rates=100/500/100,seconds=60
  sine:low=100,high=900,period_s=60,seconds=300
  daily:per_second=200,seconds=120,days=2

A spike says when it comes, and what it does: more tuples (magnitude: the rate
at the peak over the normal one), or a share of the tuples to a few hot keys, or
both at once. Its times are seconds of the run, after speed has compressed it:

  at_s=60,duration_s=30,time_to_peak_s=5,magnitude=4
  at_s=60,duration_s=30,hot_keys=3,share=0.5
  at_s=60,duration_s=30,magnitude=4,hot_keys=3,share=0.5
  random:count=3

It may also have peak_s, how long it stays at its peak (else half of what is left
after time_to_peak_s), and skew, how unequal the hot keys are (0: not; below 1).
"""

SHAPES: dict[str, Callable[..., Arrivals]] = {
    "constant": constant,
    "ramp": ramp,
    "steps": steps,
    "sine": sine,
    "daily": daily,
}

_TIMES = ("at_s", "duration_s", "time_to_peak_s", "peak_s")
_VOLUME = ("magnitude",)
_DATA = ("hot_keys", "share", "skew")


def parse_workload(
    word: str,
    *,
    speed: float = 1.0,
    scale: float = 1.0,
    spikes: Iterable[str] = (),
    seed: int = 0,
    zipf: float = 0.0,
) -> Arrivals:
    """The workload of this name, `speed` times as fast, with `scale` times as many tuples, and with these spikes.

    The same words and the same seed give the same workload, to the byte. `zipf` is the exponent of the popularity of
    keys in normal times; 0: all keys the same.
    """
    arrivals = with_popularity(parse_calm(word, speed=speed, scale=scale), zipf, seed)
    return with_spikes(arrivals, parse_spikes(spikes, seconds=arrivals.seconds, seed=seed), seed)


def parse_calm(word: str, *, speed: float = 1.0, scale: float = 1.0) -> Arrivals:
    """The workload before any spike."""
    name, _, rest = word.partition(":")
    if name in SHAPES:
        where = f"workload {word!r}"
        try:
            shape = SHAPES[name](**read_parameters(where, rest, SHAPES[name]))
        except SettingError as error:
            raise error if str(error).startswith(where) else SettingError(f"{where}: {error}") from None
        return paced(np.asarray(shape.ends_s), np.diff(shape.counts), speed, scale)
    if word not in trace_names() and find_trace(word) is None:
        if word.endswith(".csv"):
            raise SettingError(f"workload {word!r}: no such file; {where_looked()}")
        raise SettingError(
            f"workload {word!r}: no such trace, file or shape; {suggestion(name, [*trace_names(), *SHAPES])}"
        )
    return load_trace(word, speed=speed, scale=scale)


def parse_spikes(words: Iterable[str], *, seconds: float, seed: int = 0) -> tuple[Spike, ...]:
    """Those of all words together; the ones by chance are drawn for a run of so many seconds."""
    check_seed(seed)
    random = np.random.Generator(np.random.PCG64(seed))
    return tuple(spike for word in words for spike in _spikes(word, seconds, random))


def _spikes(word: str, seconds: float, random: np.random.Generator) -> tuple[Spike, ...]:
    where = f"spike {word!r}"
    name, _, rest = word.partition(":")
    if name == "random":
        count = read_pairs(where, rest, ["count"]).get("count", "3")
        return random_spikes(random, seconds, read_value(f"{where}: count", count, int))
    pairs = read_pairs(where, word, [*_TIMES, *_VOLUME, *_DATA])
    kinds: list[tuple[type[Spike], tuple[str, ...]]] = [(VolumeSpike, _VOLUME), (DataSpike, _DATA)]
    wanted = [(kind, own) for kind, own in kinds if any(name in pairs for name in own)]
    if not wanted:
        raise SettingError(
            f"{where}: expected magnitude for more tuples, or hot_keys and share for hot keys, or all three"
        )
    return tuple(kind(**read_parameters(where, _only(pairs, (*_TIMES, *own)), kind)) for kind, own in wanted)


def _only(pairs: dict[str, str], names: tuple[str, ...]) -> str:
    return ",".join(f"{name}={value}" for name, value in pairs.items() if name in names)
