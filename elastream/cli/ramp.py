"""`elastream ramp APP`: benchmark an application, get the table that its controller is made of."""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Grid

from elastream.applications.load import application_names, find_app, load_app, parameters_of
from elastream.capacity.ramp import Benchmark, Ramp, Seen, outcome
from elastream.cli.app_options import app_options
from elastream.cli.console import plain_console
from elastream.cli.simulator_options import add_simulator_arguments, simulator_options
from elastream.errors import SettingError
from elastream.policies.multi_level.table import COUNTS, Table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "app", help=f"path/to/app.py:topology, module:topology, or one of {', '.join(application_names())}"
    )
    parser.add_argument("--step", type=float, default=1000.0, metavar="N", help="tuples per second from level to level")
    parser.add_argument("--hold", type=float, default=30.0, metavar="S", help="how long each level is held")
    parser.add_argument("--most", type=float, default=16000.0, metavar="N", help="the highest level")
    parser.add_argument("--td", type=float, metavar="S", help="how often it is looked; default: a quarter of --hold")
    parser.add_argument("--health", type=float, default=0.9, help="below this an instance is congested")
    parser.add_argument(
        "--overload", type=float, default=0.9, help="CPU or memory above this: a new machine; 0: every replica gets one"
    )
    parser.add_argument(
        "--out", metavar="FILE", default="table.yaml", help="the table; for --policy multi-level:table=FILE"
    )
    parser.add_argument("--master", help="Spark's master; default: local")
    parser.add_argument("--base", metavar="DIR", help="where tuples wait; default: a new directory")
    parser.add_argument("--simulate", action="store_true", help="on a model, in virtual time, with --cluster")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random in a simulation")
    add_simulator_arguments(parser)


def main(args: argparse.Namespace) -> int:
    ramp = Ramp(args.step, args.hold, args.most)
    console = plain_console()
    benchmark = Benchmark(ramp, args.health, args.overload, lambda seen: _show(seen, console))
    td_s = ramp.td_s if args.td is None else args.td
    if not 0 < td_s <= args.hold:
        raise SettingError(f"--td must be more than 0 and --hold at most, got {td_s:g}")
    if args.simulate:
        _simulate(args, ramp, benchmark, td_s)
    else:
        for option in ("cluster", "profile"):
            if getattr(args, option):
                raise SettingError(f"--{option} is for a simulation; add --simulate")
        _run(args, ramp, benchmark, td_s, console)
    made = outcome(args.app, ramp, benchmark.seen, args.health)
    try:
        Path(args.out).write_text(made.table.to_yaml(), encoding="utf-8")
    except OSError as error:
        raise SettingError(f"--out {args.out}: cannot be written: {error.strerror}") from None
    console.print(_grid(made.table))
    for remark in made.remarks:
        console.print(remark, soft_wrap=True, highlight=False)
    console.print(
        f"written: {args.out}; use it with --policy multi-level:table={args.out}", soft_wrap=True, highlight=False
    )
    return 0


def _simulate(args: argparse.Namespace, ramp: Ramp, benchmark: Benchmark, td_s: float) -> None:
    from elastream.control import Guards
    from elastream.simulator.application import Application, simulate_application

    simulated = simulator_options(args)
    options = app_options(args.app, args.app_words)
    machine = simulated.profile.machine
    with tempfile.TemporaryDirectory(prefix="elastream-ramp-") as folder:
        graph = load_app(args.app, ramp.arrivals(), _with_database(args.app, options, folder))
    added_s = options["service_ms"] / 1e3 + machine.late_s if options.get("service_ms") else 0.0
    simulate_application(
        Application(args.app, graph, simulated.profile.times(args.app), added_s),
        benchmark,
        machine,
        td_s=td_s,
        guards=Guards(slack=0.0),
        cluster=simulated.cluster,
        seconds=ramp.hold_s * len(ramp.levels) + td_s,
        seed=args.seed,
        make_system=simulated.make_system,
    )


def _with_database(app: str, options: dict[str, Any], folder: str) -> dict[str, Any]:
    """An application that stores results keeps none of a benchmark's, unless told where."""
    if "database" not in parameters_of(find_app(app)):
        return options
    return {"database": f"{folder}/results.sqlite"} | options


def _run(args: argparse.Namespace, ramp: Ramp, benchmark: Benchmark, td_s: float, console: Console) -> None:
    from elastream.control import Guards
    from elastream.engine import start

    with tempfile.TemporaryDirectory(prefix="elastream-ramp-") as folder:
        options = _with_database(args.app, app_options(args.app, args.app_words), folder)
        graph = load_app(args.app, ramp.arrivals(), options)
        console.print("starting Spark ...", highlight=False)
        handle = start(
            graph,
            # On a cluster the base is a directory that all machines see: `run` asks for it.
            args.base or (None if args.master else f"{folder}/base"),
            master=args.master,
            policy=benchmark,
            td_s=td_s,
            guards=Guards(slack=0.0),
        )
        try:
            handle.await_begin()
            handle.await_end(ramp.hold_s * len(ramp.levels) + td_s)
        finally:
            handle.stop()


def _show(seen: Seen, console: Console) -> None:
    said = f"{seen.per_s:>9,.0f}/s  health {seen.health:.2f}  {seen.configuration}"
    console.print(said + (f"  {seen.reason}" if seen.reason else ""), soft_wrap=True, highlight=False)
    sys.stdout.flush()


def _grid(table: Table) -> Grid:
    grid = Grid(box=None)
    names = [name for name, level in COUNTS.items() if level in table.rows[0].configuration.levels]
    # Those whose sizes differ; the file has all.
    operators = [
        name
        for name in table.rows[0].configuration.replicas
        if len({r.configuration.replicas[name] for r in table.rows}) > 1
    ]
    for title in ("tuples/s", *reversed(names), *operators):
        grid.add_column(title, justify="right")
    lower = 0.0
    for row in table.rows:
        counts = [str(row.configuration.levels[COUNTS[name]]) for name in reversed(names)]
        counts += [str(row.configuration.replicas[name]) for name in operators]
        grid.add_row(f"{lower:,.0f} - {row.up_to:,.0f}", *counts)
        lower = row.up_to
    return grid
