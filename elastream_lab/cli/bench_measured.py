"""Benchmarks that measure something once: the engine, the edges, state, platforms, peers, decisions, the simulator."""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rich.markdown import Markdown

from elastream.cli.console import plain_console
from elastream.codec import encode
from elastream.errors import SettingError
from elastream_lab.bench.common.document import document_of


class Measured(Protocol):
    """What a benchmark gives."""

    @property
    def met(self) -> bool: ...

    def to_markdown(self) -> str: ...


T = TypeVar("T", bound=Measured)


def engine(args: argparse.Namespace) -> int:
    from elastream_lab.bench.engine.command import bench_engine
    from elastream_lab.bench.engine.plot import draw_bench

    return _measure(args, partial(bench_engine, args.quick), draw_bench)


def kafka(args: argparse.Namespace) -> int:
    from elastream_lab.bench.connectors.kafka import bench_kafka

    return _measure(args, partial(bench_kafka, args.quick))


def dataframe(args: argparse.Namespace) -> int:
    from elastream_lab.bench.connectors.dataframe import bench_dataframe

    return _measure(args, partial(bench_dataframe, args.quick))


def keyed(args: argparse.Namespace) -> int:
    from elastream_lab.bench.keyed.command import bench_keyed

    return _measure(args, partial(bench_keyed, args.quick))


def redirection(args: argparse.Namespace) -> int:
    from elastream_lab.bench.keyed.redirection import bench_redirection

    return _measure(args, partial(bench_redirection, args.quick))


def platform(args: argparse.Namespace) -> int:
    from elastream.simulator.profile import load_profile
    from elastream_lab.bench.platform.command import PlatformBench, bench_platform
    from elastream_lab.bench.platform.plot import draw_platform

    if (args.master is None) != (args.base is None):
        raise SettingError("--master and --base go together: a cluster needs a directory that all its machines see")
    known = load_profile(args.profile)

    def bench(quick: bool, say: Callable[[str], None]) -> PlatformBench:
        return bench_platform(quick, say, known=known, master=args.master, folder=args.base)

    def draw(found: PlatformBench, path: Path) -> None:
        draw_platform(found, path)
        path.with_name("profile.json").write_bytes(encode(found.profile(known), indent=2) + b"\n")

    return _measure(args, partial(bench, args.quick), draw)


def state(args: argparse.Namespace) -> int:
    from elastream_lab.bench.connectors.state import bench_state

    return _measure(args, partial(bench_state, args.quick))


def peers(args: argparse.Namespace) -> int:
    from elastream_lab.bench.peers.compare import StoppedEarly, bench_peers
    from elastream_lab.bench.peers.plot import draw_peers

    if not 1 <= args.seconds < float("inf"):
        raise SettingError(f"--seconds must be 1 or more, got {args.seconds:g}")
    if args.runs < 1:
        raise SettingError(f"--runs must be 1 or more, got {args.runs}")
    try:
        return _measure(args, partial(bench_peers, args.seconds, args.runs, Path(args.peers)), draw_peers)
    except StoppedEarly as stopped:
        if stopped.result.runs:
            _write(stopped.result, Path(args.report), args.suite)
        raise


def _write(result: Measured, report: Path, suite: str) -> tuple[dict[str, Any], str]:
    document, text = document_of(result), result.to_markdown()
    (report / f"{suite}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (report / f"{suite}.md").write_text(text.rstrip() + "\n", encoding="utf-8")
    return document, text


def _measure(
    args: argparse.Namespace,
    bench: Callable[[Callable[[str], None]], T],
    draw: Callable[[T, Path], None] | None = None,
) -> int:
    console = plain_console(stderr=args.json)
    report = Path(args.report)
    # An unusable directory is better found now than in ten minutes.
    report.mkdir(parents=True, exist_ok=True)
    result = bench(console.print)
    document, text = _write(result, report, args.suite)
    if draw is not None:
        draw(result, report / f"{args.suite}.png")
    console.print(f"report written to {report}")
    if args.json:
        sys.stdout.write(json.dumps(document) + "\n")
    else:
        console.print(Markdown(text))
    return 0 if result.met else 1


def decisions(args: argparse.Namespace) -> int:
    from elastream_lab.bench.papers.decisions import bench_decisions, decision_table
    from elastream_lab.bench.papers.overhead import bench_overhead, overhead_table

    times = bench_decisions(args.policy)
    learning = bench_overhead() if args.policy.partition(":")[0] == "autrascale" else []
    if args.json:
        document = [vars(time) for time in times]
        sys.stdout.write(json.dumps(document + [vars(overhead) for overhead in learning]) + "\n")
    else:
        console = plain_console(soft_wrap=False)
        console.print(Markdown(decision_table(times)))
        if learning:
            console.print(Markdown(overhead_table(learning)))
    return 0 if all(time.met for time in times) else 1


def speed(args: argparse.Namespace) -> int:
    from elastream_lab.bench.simulator_speed import bench_simulator, speed_table

    console = plain_console(stderr=args.json)
    found = bench_simulator(console.print)
    if args.json:
        sys.stdout.write(json.dumps([document_of(its) for its in found]) + "\n")
    else:
        console.print(Markdown(speed_table(found)))
    return 0 if all(its.met for its in found) else 1


def fidelity(args: argparse.Namespace) -> int:
    from elastream.simulator.profile import load_profile
    from elastream_lab.bench.suites.fidelity import bench_fidelity, fidelity_scenarios, fidelity_table
    from elastream_lab.bench.suites.simulator_plant import SimulatorPlant
    from elastream_lab.bench.suites.spark_plant import SparkPlant
    from elastream_lab.cli.suite_progress import watch_on

    console = plain_console(stderr=args.json)
    found = bench_fidelity(
        fidelity_scenarios(),
        SparkPlant(watch_on(console)),
        SimulatorPlant(load_profile(args.profile)),
        Path(args.report) / "fidelity",
        console.print,
        again=args.again,
    )
    if args.json:
        sys.stdout.write(json.dumps([document_of(its) for its in found]) + "\n")
    else:
        console.print(Markdown(fidelity_table(found)))
    return 0 if all(its.met for its in found) else 1


MEASURED: dict[str, Callable[[argparse.Namespace], int]] = {
    "engine": engine,
    "kafka": kafka,
    "dataframe": dataframe,
    "keyed": keyed,
    "redirection": redirection,
    "platform": platform,
    "state": state,
    "peers": peers,
    "decisions": decisions,
    "fidelity": fidelity,
    "simulator": speed,
}
"""By the names that people type."""
