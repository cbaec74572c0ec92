"""The command `elastream`. Exit code 0: done; 1: a check failed; 2: the call or the application is wrong."""

import argparse
import sys
from importlib import import_module

from elastream import __version__
from elastream.errors import ElastreamError

COMMANDS = {
    "run": "run an application on Spark",
    "simulate": "the same run on a model, in virtual time",
    "ramp": "raise the load on an application, and get the table that its controller is made of",
    "usual": "learn the usual load of hours and weekdays, from a trace or from a run",
    "calibrate": "measure this machine for the simulator",
    "learn": "learn what is normal from the past, for applications that look for what is not",
    "audit": "check that nothing was lost or doubled in a base directory",
    "letters": "the tuples on which operators raised: look, take them away, or send them again",
    "state": "what keyed operators remember: an overview, one key, or all of it as Parquet",
    "readers": "who reads the outputs of a base, and how far each has come",
    "models": "what AuTraScale has learned of applications: list, show, remove",
    "score": "the papers' metrics and the adaptability index of a run, or of any system's CSV",
    "trace": "list the traces, or draw what arrives when",
    "replay": "what another policy would have decided in a run that is over",
    "bench": "measure the engine against Spark itself, or policies against one another",
    "tournament": "policies on a set of traces, simulated: who is cheap, and who is in time",
    "fuzz": "damaged input of every kind: each must be answered with one clear line",
    "chaos": "kill, freeze, cut and fill what a run stands on, and count what became of its tuples",
    "demo": "real traffic with a spike: a policy beside too few and too many replicas",
}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="elastream", description="Elastic stream processing on Spark.")
    parser.add_argument("--version", action="version", version=f"elastream {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    words = sys.argv[1:] if words is None else words
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose)
        if words and words[0] == name:
            # Only the one that is called: Spark and the plotting library take their time to load.
            import_module(f"elastream.cli.{name}").add_arguments(command)
    args = parser.parse_args(words)
    try:
        code: int = import_module(f"elastream.cli.{args.command}").main(args)
    except ElastreamError as error:
        sys.stderr.write(f"elastream: {error}\n")
        return 2
    return code


if __name__ == "__main__":
    sys.exit(main())
