"""`elastream calibrate`: measure this machine and applications with Spark, for the simulator."""

import argparse
import json
from pathlib import Path

from rich.console import Console

from elastream.apps import BUILT_IN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("apps", nargs="*", metavar="APP", help=f"default: {', '.join(BUILT_IN)}")
    parser.add_argument("--profile", metavar="FILE", default="profile.json", help="where the profile goes")


def main(args: argparse.Namespace) -> int:
    from elastream.bench.calibrate import calibrate

    console = Console(highlight=False, soft_wrap=True)
    profile = calibrate(args.apps or list(BUILT_IN), console.print)
    Path(args.profile).write_text(json.dumps(profile.to_json(), indent=2) + "\n", encoding="utf-8")
    machine = profile.machine
    console.print(
        f"a tick costs {machine.base_s * 1e3:.0f} ms, {machine.task_s * 1e3:.1f} ms a task and "
        f"{machine.tuple_s * 1e6:.0f} us a tuple, to {machine.spread:.0%}; a restart {machine.restart_s:.1f} s; "
        f"a wait is {machine.late_s * 1e3:.2f} ms late, and the first of a lane in a tick {machine.lane_s * 1e3:.2f} ms more"
    )
    for app, operators in profile.apps.items():
        each = ", ".join(f"{name} {times.service_s * 1e3:.3g} ms" for name, times in operators.items())
        console.print(f"{app}: {each}")
    console.print(f"profile {args.profile}")
    return 0
