"""The commands that the laboratory adds to `elastream`."""

from elastream.cli.commands import Command, Group

COMMANDS = (
    Command(
        "chaos",
        Group.VERIFY,
        "kill, freeze and cut what a run stands on; recount its tuples",
        "elastream_lab.cli.chaos",
        takes_app_options=True,
    ),
    Command("fuzz", Group.VERIFY, "damaged input of every kind, each answered in one line", "elastream_lab.cli.fuzz"),
    Command(
        "bench",
        Group.LAB,
        "measure the engine, or policies against one another",
        "elastream_lab.cli.bench",
        takes_app_options=True,
    ),
    Command(
        "tournament",
        Group.LAB,
        "policies on many traces: cost and lateness in one table",
        "elastream_lab.cli.tournament",
    ),
    Command(
        "learn", Group.LAB, "learn from past flows what is normal, for the application ddos", "elastream_lab.cli.learn"
    ),
    Command(
        "demo", Group.LAB, "a policy beside too few and too many replicas, on real traffic", "elastream_lab.cli.demo"
    ),
)
