"""`elastream run APP`: run an application on Spark, watch it, write its report."""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from elastream.applications.load import application_names, load_app
from elastream.cli.app_options import app_options
from elastream.cli.console import plain_console
from elastream.cli.guard_options import guards_of
from elastream.cli.live import watch
from elastream.cli.policy_options import BY_HAND, DEFAULT, POLICY_WORD, add_policy_arguments, chosen_policy
from elastream.cli.setting_flags import add_setting_flags, settings_of
from elastream.cli.signals import until_asked_to_stop
from elastream.cli.summary import print_summary
from elastream.cli.workload_options import add_workload_arguments, chosen_arrivals
from elastream.control import Guards, checked_td
from elastream.engine import Handle, start
from elastream.engine.before_start import check_folder
from elastream.engine.operations.snapshot import RunSnapshots
from elastream.engine.recording import Recorder, events_of
from elastream.errors import RunFailed, SettingError
from elastream.policies import policy_names
from elastream.report import write_report
from elastream.settings import Settings
from elastream.topology import Graph


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "app", help=f"path/to/app.py:topology, module:topology, or one of {', '.join(application_names())}"
    )
    add_workload_arguments(parser)
    parser.add_argument("--seconds", type=float, help="stop after this time; default: when the sources are exhausted")
    parser.add_argument("--master", help="Spark's master; default: local, with a slot for each lane")
    parser.add_argument(
        "--base", metavar="DIR", help="where tuples wait; the same base goes on; default: a new directory"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="delete what earlier runs left in the base, and begin anew; needs --base"
    )
    parser.add_argument(
        "--report",
        metavar="DIR",
        help="write report.json, series.parquet, report.png, report.html here; default: a temporary directory",
    )
    parser.add_argument(
        "--replicas",
        metavar="OP=N[@S]",
        action="append",
        default=[],
        help="set an operator's replicas, at second S of the run; may be repeated",
    )
    parser.add_argument(
        "--policy",
        metavar=POLICY_WORD,
        help=f"who decides the replicas: {', '.join(policy_names())}; {BY_HAND}: nobody; default: {DEFAULT}, or {BY_HAND} with --replicas",
    )
    add_policy_arguments(parser)
    add_setting_flags(parser, "queues", "errors")
    parser.add_argument(
        "--allow-dead-letters",
        action="store_true",
        help="tuples on which operators fail are no failure of the run: exit code 0, and it goes on when an operator fails on "
        "all of its first 100; default: exit code 1, and it stops then",
    )
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="record what reaches the driver, for `elastream ticks`; default: nothing is recorded",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the report as JSON, nothing else, on standard output"
    )


def main(args: argparse.Namespace) -> int:
    arrivals = chosen_arrivals(args)
    if args.fresh and not args.base:
        raise SettingError("--fresh begins a base anew; name one with --base")
    policy = chosen_policy(args)
    settings = settings_of(args, errors={"stop_after_failures": None} if args.allow_dead_letters else {})
    guards = guards_of(args)
    checked_td(args.td)
    if args.report:
        check_folder("--report", args.report)
    graph = load_app(args.app, arrivals, app_options(args.app, args.app_words))
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
        fresh=args.fresh,
        record=args.record,
        seconds=args.seconds,
        folder=Path(args.report) if args.report else None,
        console=plain_console(stderr=args.json, soft_wrap=False),
    )
    if args.json:
        sys.stdout.write(json.dumps(report) + "\n")
    return 1 if report["new_dead_letters"] and not args.allow_dead_letters else 0


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
    td_s: float | None = None,
    guards: Guards | None = None,
    models: str | None = None,
    base: str | None,
    master: str | None,
    fresh: bool = False,
    record: str | None = None,
    seconds: float | None,
    folder: Path | None,
    console: Console,
) -> dict[str, Any]:
    """Run to the end, to the time limit or to Ctrl-C; the report is written in every case."""
    console.print(str(graph), highlight=False)
    console.print("starting Spark ...", highlight=False)
    recorder, snapshots = Recorder(graph), RunSnapshots()
    handle = start(
        graph,
        base,
        master=master,
        settings=settings,
        policy=policy,
        td_s=td_s,
        guards=guards,
        models=models,
        listeners=[recorder, snapshots],
        fresh=fresh,
        record=record,
    )
    _await_begin(handle, console)
    if handle.timed:
        each = ", ".join(f"{name} {seconds * 1e3:.3g} ms" for name, seconds in handle.timed.items())
        console.print(f"timed before the start, a tuple: {each}", highlight=False, soft_wrap=True)
    console.print(f"base {handle.store}", highlight=False, soft_wrap=True)
    if handle.log_file:
        console.print(f"log  {handle.log_file}", highlight=False, soft_wrap=True)
    wanted = until_asked_to_stop()
    left = list(schedule)

    def step(elapsed: float) -> bool:
        while left and elapsed >= left[0][0]:
            second, name, size = left.pop(0)
            handle.scale(name, size, f"by hand, at {second:g} s")
        return wanted() and (seconds is None or elapsed < seconds)

    try:
        watch(handle, console, step, snapshots=snapshots)
    finally:
        try:
            _stop(handle, console, asked=not wanted())
        finally:
            report = _finish(handle, recorder, folder, console)
    return report


def _await_begin(handle: Handle, console: Console) -> None:
    """Until the stream flows or the run is over; every stage of the start is told."""
    told = ""
    while handle.active and not handle.await_begin(0.05):
        if handle.stage and handle.stage != told:
            told = handle.stage
            console.print(f"{told} ...", highlight=False)


def _stop(handle: Handle, console: Console, *, asked: bool) -> None:
    """Whoever asks all processes to end, as systemd does, asks Spark too: that is no failure of the run then."""
    try:
        handle.stop()
    except RunFailed as failure:
        if not asked:
            raise
        console.print(f"stopped while Spark was: {failure}", soft_wrap=True)


def _finish(handle: Handle, recorder: Recorder, folder: Path | None, console: Console) -> dict[str, Any]:
    recorder.record.dead_letters, recorder.record.failures = handle.new_dead_letters, list(handle.failures)
    folder = folder or Path(tempfile.mkdtemp(prefix="elastream-report-"))
    report = write_report(recorder.record, events_of(handle.audit()), folder)
    print_summary(report, console)
    for line in sink_summaries(handle.graph):
        console.print(line, highlight=False, soft_wrap=True)
    console.print(f"report {folder}/report.html", highlight=False, soft_wrap=True)
    return report


def sink_summaries(graph: Graph) -> list[str]:
    """One line from each sink that has a method `summary`, for example of all that is in its table."""
    functions: list[Any] = [getattr(operator.function, "function", operator.function) for operator in graph.served]
    lines: list[str | None] = [function.summary() for function in functions if hasattr(function, "summary")]
    return [line for line in lines if line]
