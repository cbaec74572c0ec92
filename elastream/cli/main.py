"""The command `elastream`. Exit code 0: done; 1: a check failed; 2: the call or the application is wrong."""

import argparse
import sys
from importlib import import_module

from elastream import __version__
from elastream.errors import ElastreamError

COMMANDS = {
    "run": "run an application on Spark",
    "audit": "check that nothing was lost or doubled in a base directory",
    "replay": "what another policy would have decided in a run that is over",
    "bench": "measure the engine against Spark itself, or policies against one another",
    "demo": "real traffic with a spike: a policy beside too few and too many replicas",
}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="elastream", description="Elastic stream processing on Spark.")
    parser.add_argument("--version", action="version", version=f"elastream {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        import_module(f"elastream.cli.{name}").add_arguments(
            commands.add_parser(name, help=purpose, description=purpose)
        )
    args = parser.parse_args(words)
    try:
        code: int = import_module(f"elastream.cli.{args.command}").main(args)
    except ElastreamError as error:
        sys.stderr.write(f"elastream: {error}\n")
        return 2
    return code


if __name__ == "__main__":
    sys.exit(main())
