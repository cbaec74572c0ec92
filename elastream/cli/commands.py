"""The commands of `elastream`: ours, and those that installed packages add through entry points."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from elastream.errors import ElastreamError
from elastream.extensions import COMMANDS, installed, load_installed

log = logging.getLogger("elastream.cli")


class Group(StrEnum):
    """Headings of `elastream --help`, in this order."""

    RUN = "run and watch"
    MAINTAIN = "maintain a base"
    SIZE = "size"
    VERIFY = "verify"
    LAB = "laboratory"


@dataclass(frozen=True)
class Command:
    """One command. Its module has `add_arguments(parser)` and `main(args) -> int`."""

    name: str
    group: Group
    purpose: str
    module: str
    takes_app_options: bool = False
    """True if options that it does not know belong to the application that it is given."""


OWN = (
    Command("new", Group.RUN, "make a folder with an application and its test", "elastream.cli.new"),
    Command("run", Group.RUN, "run an application on Spark", "elastream.cli.run", takes_app_options=True),
    Command("status", Group.RUN, "a run from another terminal, on one screen or as JSON", "elastream.cli.status"),
    Command("watch", Group.RUN, "the live view of a run from another terminal", "elastream.cli.watch"),
    Command("scale", Group.RUN, "set replicas, seats, hosts or executors of a run", "elastream.cli.scale"),
    Command("stop", Group.RUN, "stop a run; what waits is kept for the next one", "elastream.cli.stop"),
    Command("drain", Group.RUN, "read nothing more, serve what waits, then stop", "elastream.cli.drain"),
    Command("kafka", Group.RUN, "a Kafka broker with a topic and a stream of clicks", "elastream.cli.kafka"),
    Command("trace", Group.RUN, "list the traces, or draw what arrives when", "elastream.cli.trace"),
    Command("score", Group.RUN, "metrics and adaptability index of a run, or of a CSV file", "elastream.cli.score"),
    Command(
        "letters", Group.MAINTAIN, "tuples on which operators raised: list, remove, retry", "elastream.cli.letters"
    ),
    Command("state", Group.MAINTAIN, "state of keyed operators: overview, one key, or Parquet", "elastream.cli.state"),
    Command("readers", Group.MAINTAIN, "readers of the outputs of a base, and their progress", "elastream.cli.readers"),
    Command("discard", Group.MAINTAIN, "drop the tuples that wait for operators of a run", "elastream.cli.discard"),
    Command(
        "check",
        Group.MAINTAIN,
        "what would become of a base with an application",
        "elastream.cli.check",
        takes_app_options=True,
    ),
    Command(
        "simulate",
        Group.SIZE,
        "the same run on a model, in virtual time",
        "elastream.cli.simulate",
        takes_app_options=True,
    ),
    Command("replay", Group.SIZE, "decisions of another policy on a recorded run", "elastream.cli.replay"),
    Command("calibrate", Group.SIZE, "measure this machine for the simulator", "elastream.cli.calibrate"),
    Command(
        "ramp",
        Group.SIZE,
        "raise the load, and write the table of `multi-level`",
        "elastream.cli.ramp",
        takes_app_options=True,
    ),
    Command("usual", Group.SIZE, "learn the usual load of hours and weekdays", "elastream.cli.usual"),
    Command("models", Group.SIZE, "models that AuTraScale has learned: list, show, remove", "elastream.cli.models"),
    Command(
        "ticks",
        Group.VERIFY,
        "make the ticks of a recorded run again, for debugging",
        "elastream.cli.ticks",
        takes_app_options=True,
    ),
    Command("audit", Group.VERIFY, "check that a base lost and duplicated nothing", "elastream.cli.audit"),
)


def all_commands() -> dict[str, Command]:
    """By name. A package cannot replace one of ours."""
    commands = {command.name: command for command in OWN}
    for name in sorted(installed(COMMANDS)):
        try:
            added: Sequence[Command] = load_installed(COMMANDS, name)
        except (ElastreamError, ImportError, AttributeError) as error:
            # One package that is broken must not take all other commands along.
            log.warning("commands of %s are left out: %s", name, error)
            continue
        for command in added:
            commands.setdefault(command.name, command)
    return commands


def overview(commands: dict[str, Command]) -> str:
    """The grouped list of commands for `elastream --help`."""
    lines = []
    for group in Group:
        members = [command for command in commands.values() if command.group is group]
        if members:
            lines += [f"{group}:", *(f"  {command.name:<12} {command.purpose}" for command in members)]
    return "\n".join(lines)
