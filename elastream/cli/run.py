"""`elastream run APP`: run an application on Spark, watch it, write its report."""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from rich.console import Console

from elastream.apps import BUILT_IN
from elastream.apps.database import remarks
from elastream.apps.load import load_app
from elastream.cli.app_options import add_app_arguments, app_options
from elastream.cli.console import plain_console
from elastream.cli.guard_options import guards_of
from elastream.cli.live import watch
from elastream.cli.policy_options import BY_HAND, DEFAULT, add_policy_arguments, chosen_policy
from elastream.cli.summary import print_summary
from elastream.control import Guards, checked_td
from elastream.engine import Handle, run
from elastream.engine.measure.recording import Recorder, events_of
from elastream.errors import RunFailed, SettingError
from elastream.policies import POLICIES
from elastream.scoring import write_report
from elastream.settings import Settings
from elastream.topology import Graph
from elastream.workload import parse_workload


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("app", help=f"a built-in ({', '.join(BUILT_IN)}), path/to/app.py:topology or module:topology")
    parser.add_argument(
        "--trace", metavar="NAME|FILE|SHAPE", help="drive the app's replay sources by this: see elastream trace"
    )
    parser.add_argument("--speed", type=float, default=1.0, help="compress the trace's time this many times")
    parser.add_argument("--scale", type=float, default=1.0, help="multiply the trace's events")
    parser.add_argument("--spike", action="append", default=[], metavar="KEY=N,...", help="see elastream trace")
    parser.add_argument("--seed", type=int, default=0, help="of what is random in the workload")
    parser.add_argument("--seconds", type=float, help="stop after this time; default: when the sources are exhausted")
    parser.add_argument("--master", help="Spark's master; default: local, with a slot for each lane")
    parser.add_argument(
        "--base", metavar="DIR", help="where tuples wait; the same base goes on; default: a new directory"
    )
    parser.add_argument(
        "--report", metavar="DIR", help="write report.json, series.parquet, report.png, report.html here"
    )
    parser.add_argument(
        "--replicas",
        metavar="OP=N[@S]",
        action="append",
        default=[],
        help="set an operator's replicas, at second S of the run; may be repeated",
    )
    add_app_arguments(parser)
    parser.add_argument(
        "--policy",
        metavar="NAME[:KEY=N,...]",
        help=f"who decides the replicas: {', '.join(POLICIES)}; {BY_HAND}: nobody; default: {DEFAULT}, or {BY_HAND} with --replicas",
    )
    add_policy_arguments(parser)
    parser.add_argument("--q-size", type=int, help="the most tuples that may wait in one lane")
    parser.add_argument("--on-full", choices=["wait", "drop"], default="wait", help="what a full lane does")
    parser.add_argument("--t-out", type=float, metavar="S", help="drop tuples older than this")
    parser.add_argument(
        "--on-error",
        choices=["dead_letter", "stop"],
        default="dead_letter",
        help="what happens to a tuple on which an operator raises",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the report as JSON, nothing else, on standard output"
    )


def main(args: argparse.Namespace) -> int:
    if args.trace is None and (args.speed != 1.0 or args.scale != 1.0 or args.spike):
        raise SettingError("--speed, --scale and --spike change a trace; name one with --trace")
    policy = chosen_policy(args)
    settings = Settings(q_size=args.q_size, on_full=args.on_full, t_out_s=args.t_out, on_error=args.on_error)
    guards = guards_of(args)
    checked_td(args.td)
    arrivals = None
    if args.trace:
        arrivals = parse_workload(args.trace, speed=args.speed, scale=args.scale, spikes=args.spike, seed=args.seed)
    graph = load_app(args.app, arrivals, app_options(args))
    schedule = parse_schedule(args.replicas, graph)
    report = run_and_report(
        graph,
        settings,
        schedule,
        policy=policy,
        td_s=args.td,
        guards=guards,
        models=args.models,
        base=args.base,
        master=args.master,
        seconds=args.seconds,
        folder=Path(args.report) if args.report else None,
        console=plain_console(stderr=args.json, soft_wrap=False),
    )
    if args.json:
        sys.stdout.write(json.dumps(report) + "\n")
    return 0


def parse_schedule(words: list[str], graph: Graph) -> list[tuple[float, str, int]]:
    """`op=4@20` -> (20.0, "op", 4), in the order of time."""
    schedule = []
    for word in words:
        name, equals, rest = word.partition("=")
        size, _, second = rest.partition("@")
        try:
            change = (float(second or 0), name, int(size))
        except ValueError:
            raise SettingError(
                f"--replicas {word!r}: expected OPERATOR=NUMBER@SECOND, for example score=4@20"
            ) from None
        known = [operator.name for operator in graph.served]
        if not equals or name not in known:
            raise SettingError(f"--replicas {word!r}: no operator {name!r}; there are {', '.join(known)}")
        schedule.append(change)
    return sorted(schedule)


def run_and_report(
    graph: Graph,
    settings: Settings,
    schedule: list[tuple[float, str, int]],
    *,
    policy: str | None = None,
    td_s: float = 5.0,
    guards: Guards | None = None,
    models: str | None = None,
    base: str | None,
    master: str | None,
    seconds: float | None,
    folder: Path | None,
    console: Console,
) -> dict[str, object]:
    """Run to the end, to the time limit or to Ctrl-C; the report is written in every case."""
    console.print(str(graph), highlight=False)
    console.print("starting Spark ...", highlight=False)
    handle = run(graph, base, master=master, settings=settings, policy=policy, td_s=td_s, guards=guards, models=models)
    recorder = Recorder(handle)
    handle.await_begin()
    if handle.timed:
        each = ", ".join(f"{name} {seconds * 1e3:.3g} ms" for name, seconds in handle.timed.items())
        console.print(f"timed before the start, a tuple: {each}", highlight=False, soft_wrap=True)
    console.print(f"base {handle.store}", highlight=False, soft_wrap=True)
    wanted = _until_asked_to_stop()
    left = list(schedule)

    def step(elapsed: float) -> bool:
        while left and elapsed >= left[0][0]:
            second, name, size = left.pop(0)
            recorder.reasons[name] = f"by hand, at {second:g} s"
            handle.scale(name, size)
        return wanted() and (seconds is None or elapsed < seconds)

    try:
        watch(handle, recorder.record, console, step)
    finally:
        try:
            _stop(handle, console, asked=not wanted())
        finally:
            report = _finish(handle, recorder, folder, console)
    return report


def _stop(handle: Handle, console: Console, *, asked: bool) -> None:
    """Whoever asks all processes to end, as systemd does, asks Spark too: that is no failure of the run then."""
    try:
        handle.stop()
    except RunFailed as failure:
        if not asked:
            raise
        console.print(f"stopped while Spark was: {failure}", soft_wrap=True)


def _finish(handle: Handle, recorder: Recorder, folder: Path | None, console: Console) -> dict[str, object]:
    folder = folder or Path(tempfile.mkdtemp(prefix="elastream-report-"))
    report = write_report(recorder.record, events_of(handle.audit()), folder)
    print_summary(report, console)
    for remark in remarks(handle.graph):
        console.print(remark, highlight=False, soft_wrap=True)
    console.print(f"report {folder}/report.html", highlight=False, soft_wrap=True)
    return report


def _until_asked_to_stop() -> Callable[[], bool]:
    """False once Ctrl-C or SIGTERM came: the run then stops at a tick boundary. A second one does not wait for it."""
    asked: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        signal.signal(number, signal.SIG_DFL)

    signal.signal(signal.SIGINT, remember)
    signal.signal(signal.SIGTERM, remember)
    return lambda: not asked
