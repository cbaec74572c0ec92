"""`elastream usual TRACE|BASE`: learn the usual load by hour and weekday, for `multi-level`."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from elastream.cli.console import plain_console
from elastream.control import read_journal
from elastream.errors import SettingError
from elastream.lanes import Store
from elastream.policies.multi_level.usual import DAY_S, HOUR_S, MONDAY_S, WEEK_S, Usual, learn_usual
from elastream.workload import Arrivals, parse_workload

FOLDER = "journal"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "seen", metavar="TRACE|BASE", help="a trace (elastream trace list, a CSV file), or a run's base"
    )
    parser.add_argument("--speed", type=float, default=1.0, help="compress the trace's time this many times")
    parser.add_argument("--scale", type=float, default=1.0, help="multiply the trace's events")
    parser.add_argument("--until", type=float, metavar="S", help="learn from the first seconds only, after --speed")
    parser.add_argument("--period", type=float, default=WEEK_S, metavar="S", help="default: a week, from Monday on")
    parser.add_argument("--slot", type=float, default=HOUR_S, metavar="S", help="default: an hour")
    parser.add_argument(
        "--begins", type=float, metavar="S", help="when a period begins; default: of a trace its beginning"
    )
    parser.add_argument("--out", metavar="FILE", default="usual.yaml", help="for --policy multi-level:usual=FILE")


def main(args: argparse.Namespace) -> int:
    console = plain_console()
    if (Path(args.seen) / FOLDER).is_dir() or "://" in args.seen:
        seen = _of_journal(args.seen)
        begins_s = MONDAY_S if args.period >= DAY_S else 0.0
    else:
        seen = of_arrivals(parse_workload(args.seen, speed=args.speed, scale=args.scale), args.slot, args.until)
        begins_s = 0.0
    begins_s = begins_s if args.begins is None else args.begins
    usual = learn_usual(seen, period_s=args.period, slot_s=args.slot, begins_s=begins_s)
    try:
        Path(args.out).write_text(usual.to_yaml(), encoding="utf-8")
    except OSError as error:
        raise SettingError(f"--out {args.out}: cannot be written: {error.strerror}") from None
    console.print(f"{_words(usual)}; written: {args.out}", highlight=False, soft_wrap=True)
    return 0


def of_arrivals(
    arrivals: Arrivals, slot_s: float, until_s: float | None = None
) -> Iterator[tuple[float, float, float]]:
    """A trace in intervals of a tenth of a slot, each with its end, its length and its tuples."""
    end_s = min(arrivals.seconds, until_s or arrivals.seconds)
    length_s = slot_s / 10
    for number in range(int(end_s / length_s + 1e-9)):
        began_s = number * length_s
        yield began_s + length_s, length_s, arrivals.due_by(began_s + length_s) - arrivals.due_by(began_s)


def _of_journal(base: str) -> Iterator[tuple[float, float, float]]:
    for entry in read_journal(Store(base)):
        for look in entry.all_looks:
            yield look.ended_s, look.seconds, sum(look.read)


def _words(usual: Usual) -> str:
    known = [rate for rate in usual.per_second if rate is not None]
    gaps = len(usual.per_second) - len(known)
    said = f"{len(known)} slots of {usual.slot_s:g} s, {min(known):,.0f} to {max(known):,.0f} tuples/s"
    return said + (f", {gaps} gaps: reactive there" if gaps else "")
