"""`elastream watch BASE`: the live view of a run. Ctrl-C ends the view, and not the run."""

import argparse
from dataclasses import dataclass

from elastream.cli.console import plain_console
from elastream.cli.driver import NOT_RUNNING, add_base_argument, look, open_base
from elastream.cli.live import show
from elastream.cli.status import FAILED
from elastream.engine.operations.status_document import Liveness, StatusDocument
from elastream.errors import Damaged
from elastream.lanes.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_base_argument(parser)
    parser.epilog = (
        "exit code 0: the run ended in order, or Ctrl-C; 1: no driver runs; 3: it failed, was killed, or is silent"
    )


def main(args: argparse.Namespace) -> int:
    store, console = open_base(args.base, "watch"), plain_console(soft_wrap=False)
    document, live = look(store)
    if document is None or not live.is_running:
        console.print(f"watch: {live.words}", soft_wrap=True)
        return NOT_RUNNING if live.state == "over" else FAILED
    watched = _Watched(store, document, live)
    try:
        show(console, lambda: watched.document, watched.goes_on)
    except KeyboardInterrupt:
        console.print("the view ends; the run goes on", soft_wrap=True)
        return 0
    console.print(watched.live.words, soft_wrap=True)
    return 0 if watched.live.state == "over" else FAILED


@dataclass
class _Watched:
    """The newest document of one run."""

    store: Store
    document: StatusDocument
    live: Liveness

    def goes_on(self) -> bool:
        """Read it anew; False once the run is over."""
        try:
            document, live = look(self.store)
        except (OSError, Damaged):
            # The file system may be away for a moment; the next look will tell.
            return True
        if document is not None and document.run == self.document.run:
            self.document, self.live = document, live
            return live.is_running
        return False
