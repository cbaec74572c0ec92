"""Ctrl-C and SIGTERM as a question: shall this go on?"""

import signal
from collections.abc import Callable
from types import FrameType


def until_asked_to_stop() -> Callable[[], bool]:
    """Give a function that is True until Ctrl-C or SIGTERM comes. A second one ends the process at once."""
    asked: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        signal.signal(number, signal.SIG_DFL)

    signal.signal(signal.SIGINT, remember)
    signal.signal(signal.SIGTERM, remember)
    return lambda: not asked
