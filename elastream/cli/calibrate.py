"""`elastream calibrate`: measure this machine and applications with Spark, for the simulator."""

import argparse
from pathlib import Path

from elastream.applications.load import application_names
from elastream.cli.console import plain_console
from elastream.codec import encode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("apps", nargs="*", metavar="APP", help=f"default: {', '.join(application_names())}")
    parser.add_argument("--profile", metavar="FILE", default="profile.json", help="where the profile goes")


def main(args: argparse.Namespace) -> int:
    from elastream.capacity.calibrate import calibrate

    console = plain_console()
    profile = calibrate(args.apps or application_names(), console.print)
    Path(args.profile).write_bytes(encode(profile, indent=2) + b"\n")
    machine = profile.machine
    console.print(
        f"a turn costs {machine.turn_s * 1e3:.2f} ms and {machine.receipt_s * 1e3:.2f} ms per receipt; a work "
        f"{machine.work_s * 1e3:.2f} ms and {machine.tuple_s * 1e6:.0f} us per tuple; a message {machine.hop_s * 1e3:.2f} ms; "
        f"a wait is {machine.late_s * 1e3:.2f} ms late"
    )
    for app, operators in profile.apps.items():
        each = ", ".join(
            f"{name} {times.service_s * 1e3:.3g} ms (+ {times.call_s * 1e3:.2g} per work)"
            for name, times in operators.items()
        )
        console.print(f"{app}: {each}")
    console.print(f"profile {args.profile}")
    return 0
