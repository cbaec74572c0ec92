"""The command `elastream`. Exit code 0: done; 1: a check failed; 2: the call or the application is wrong;
130: stopped by Ctrl-C."""

import argparse
import signal
import sys
import threading
from typing import Any

from elastream import __version__
from elastream.cli.commands import Command, all_commands, overview
from elastream.errors import ElastreamError, SettingError
from elastream.extensions import EXTRAS, how_to_install, import_own

HEAD = """\
Elastic stream processing on Spark. Usage: elastream COMMAND [OPTIONS]
elastream COMMAND --help lists the options of a command, elastream --version prints the version."""

STOPPED = 128 + signal.SIGINT


def main(words: list[str] | None = None) -> int:
    _heed_ctrl_c()
    try:
        return _main(sys.argv[1:] if words is None else words)
    except ElastreamError as error:
        sys.stderr.write(f"elastream: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("elastream: stopped by Ctrl-C\n")
        return STOPPED


def _main(words: list[str]) -> int:
    commands = all_commands()
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(f"{HEAD}\n\n{overview(commands)}\n")
        return 0
    if words[0] == "--version":
        sys.stdout.write(f"elastream {__version__}\n")
        return 0
    if words[0] not in commands:
        from elastream.workload.words import suggestion

        raise SettingError(f"no command {words[0]!r}; {suggestion(words[0], commands)}")
    command = commands[words[0]]
    module = _load(command)
    own = argparse.ArgumentParser(prog=f"elastream {command.name}", description=command.purpose, allow_abbrev=False)
    module.add_arguments(own)
    _state_defaults(own)
    if command.takes_app_options:
        _add_app_help(own, words[1:])
    args, rest = own.parse_known_args(words[1:])
    if rest and not (command.takes_app_options and getattr(args, "app", None)):
        own.error(f"unrecognized arguments: {' '.join(rest)}")
    args.app_words = rest
    try:
        code: int = module.main(args)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in EXTRAS:
            raise
        raise SettingError(f"{command.name} needs the package {error.name}; {how_to_install(error.name)}") from None
    return code


def _load(command: Command) -> Any:
    """Only the command that is called: Spark and the plotting library take their time to load."""
    return import_own(command.name, command.module)


def _state_defaults(parser: argparse.ArgumentParser) -> None:
    """Say the default of every option that takes a value, unless its help does."""
    for action in parser._actions:
        stated = action.help is None or "default:" in action.help
        if (
            action.option_strings
            and action.nargs != 0
            and not stated
            and action.default not in (None, [], argparse.SUPPRESS)
        ):
            action.help = f"{action.help}; default: {action.default}"


def _add_app_help(parser: argparse.ArgumentParser, words: list[str]) -> None:
    """`elastream run APP --help` also lists the options of the application."""
    if words and not words[0].startswith("-") and {"-h", "--help"} & set(words):
        from elastream.cli.app_options import app_parser

        parser.epilog = app_parser(words[0]).format_help()
        parser.formatter_class = argparse.RawDescriptionHelpFormatter


def _heed_ctrl_c() -> None:
    """Stop on SIGINT also where a shell script started this in the background, which ignores it.

    PySpark heeds it in any case: a child would then end, and its parent would go on.
    """
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    sys.exit(main())
