"""`elastream new NAME`: a folder with a small application, its test and three commands to begin with."""

import argparse
import re
from pathlib import Path

from elastream.cli.console import plain_console
from elastream.cli.new_files import FILES
from elastream.errors import SettingError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the name of the application, and of its folder: letters, digits, - and _")
    parser.add_argument("--in", dest="parent", default=".", metavar="DIR", help="make the folder there; default: here")


def main(args: argparse.Namespace) -> int:
    if not _NAME.fullmatch(args.name):
        raise SettingError(
            f"new: a name has up to 64 letters, digits, - and _, the first of them a letter, got {args.name!r}"
        )
    folder = Path(args.parent) / args.name
    if folder.exists() or folder.is_symlink():
        raise SettingError(f"new: {folder} is there already; choose another name, or another folder with --in")
    try:
        folder.mkdir(parents=True)
        for name, text in FILES.items():
            (folder / name).write_text(text.format(name=args.name), encoding="utf-8")
    except OSError as error:
        raise SettingError(
            f"new: {folder} cannot be written: {error.strerror}; choose another folder with --in"
        ) from None
    console = plain_console()
    console.print(f"{folder} has {', '.join(FILES)}. Next:")
    console.print(f"  cd {folder}\n  pytest\n  elastream run app.py:topology --base {args.name}-base")
    return 0
