"""`elastream ticks TAPE APP`: make the ticks of a recorded run again, compare them, and show them."""

import argparse

from elastream.applications.load import load_app
from elastream.cli.app_options import app_options
from elastream.cli.console import plain_console
from elastream.cli.workload_options import add_workload_arguments, chosen_arrivals
from elastream.engine.hosts.link import Event, HostCame, HostSaid, HostsFailed, HostUses
from elastream.engine.messages import ServeWork, SourceWork, ToHost, Work, Works
from elastream.engine.tape.replay import Diverged, ReplayedStep, replay_tape
from elastream.lanes.entries import Entry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tape", help="a file that `elastream run --record FILE` wrote")
    parser.add_argument("app", help="the application that was recorded, with the options that it had")
    add_workload_arguments(parser)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="show from this step on; default: the first")
    parser.add_argument("--last", type=int, metavar="N", help="show up to this step; default: none is shown")


def main(args: argparse.Namespace) -> int:
    graph = load_app(args.app, chosen_arrivals(args), app_options(args.app, args.app_words))
    console = plain_console()
    last = -1 if args.last is None and not args.first else args.last

    def show(step: ReplayedStep) -> None:
        if step.number >= args.first and (last is None or step.number <= last):
            console.print(f"step {step.number} at {step.at_s:.6f}")
            for line in (*map(_event, step.events), *map(_entry, step.entries), *(_message(*one) for one in step.sent)):
                console.print(f"  {line}", soft_wrap=True)

    try:
        steps = replay_tape(args.tape, graph, show)
    except Diverged as error:
        console.print(f"{args.tape}: {error}", style="red", soft_wrap=True)
        return 1
    console.print(f"{args.tape}: {steps} steps, the driver does what it did")
    return 0


def _event(event: Event) -> str:
    if isinstance(event, HostsFailed):
        return f"hosts failed: {event.reason}"
    if isinstance(event, HostSaid):
        done = ", ".join(str(receipt.work) for receipt in event.receipts)
        return f"host {event.host}: done {done}"
    if isinstance(event, HostCame):
        return f"host {event.host}: joins as {event.incarnation}"
    return f"host {event.host}: {'reports its usage' if isinstance(event, HostUses) else 'is lost'}"


def _entry(entry: Entry) -> str:
    parts = {
        "consumed": sum(rows for _, _, rows in entry.consumed),
        "appended": sum(piece.slice.rows for piece in entry.appended),
        "sizes": entry.sizes,
        "groups moved": sum(map(len, entry.owners.values())),
        "given": sum(given.rows for given in entry.given),
        "state changes": len(entry.changes),
        "snapshots": len(entry.wholes),
    }
    return f"entry {entry.number}: " + (
        ", ".join(f"{name} {value}" for name, value in parts.items() if value) or "empty"
    )


def _message(host: int, message: ToHost) -> str:
    if not isinstance(message, Works):
        return f"to host {host}: {type(message).__name__.lower()}"
    return f"to host {host}: " + "; ".join(map(_work, message.works))


def _work(work: Work) -> str:
    if isinstance(work, SourceWork):
        return f"work {work.id}: {work.source} {work.first}..{work.stop - 1}"
    if isinstance(work, ServeWork):
        lanes = ", ".join(f"{sum(piece.rows for piece in rows.slices)} of lane {rows.lane}" for rows in work.lanes)
        return f"work {work.id}: {work.operator}, {lanes}"
    return f"work {work.id}: {type(work).__name__}"
