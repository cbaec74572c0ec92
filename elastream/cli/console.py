"""The console that all commands print to: names and errors may have square brackets, which are no markup."""

from rich.console import Console


def plain_console(*, stderr: bool = False, soft_wrap: bool = True) -> Console:
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=soft_wrap)
