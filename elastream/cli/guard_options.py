"""Options for guards: a few on the command line, all of them in a file."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from elastream.control import Guards
from elastream.control.guards import parse_guards
from elastream.errors import SettingError
from elastream.yaml_text import parse_yaml


def add_guard_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--guards",
        metavar="FILE",
        help="limits on what a policy may do, as YAML; docs/guards.md has all; default: each operator's own",
    )
    parser.add_argument("--slots", type=int, help="the most replicas of all operators together; default: any number")
    parser.add_argument("--cooldown", type=float, metavar="S", help="a rescaled operator stays for so long; default: 0")
    parser.add_argument(
        "--largest-step", type=int, metavar="N", help="the most replicas added or removed at once; default: any number"
    )
    parser.add_argument("--slack", type=float, help="how far below a size a need must be to shrink; default: 0.1")
    parser.add_argument("--dry-run", action="store_true", help="write decisions down, carry none out")


def guards_of(args: argparse.Namespace) -> Guards:
    """Those of the file; what stands on the command line goes before."""
    given: dict[str, Any] = {
        "slots": args.slots,
        "cooldown_s": args.cooldown,
        "largest_step": args.largest_step,
        "slack": args.slack,
        "dry_run": args.dry_run or None,
    }
    found = load_guards(args.guards) if args.guards else Guards()
    return replace(found, **{name: value for name, value in given.items() if value is not None})


def load_guards(path: str) -> Guards:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"guards {path}: cannot be read: {error}") from None
    document = parse_yaml(text, f"guards {path}")
    try:
        return parse_guards(document if document is not None else {})
    except SettingError as error:
        raise SettingError(f"guards {path}: {str(error).removeprefix('guards: ')}") from None
