"""Code of users: errors that name its lines, and imports in which no run may begin.

The command line imports an application, and a host imports its functions. Neither may start a run by that.
"""

import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elastream.errors import ElastreamError, SettingError

_PACKAGE = str(Path(__file__).parent)

LONGEST = 500
"""Characters of an error that are kept."""

_NOT_THE_USERS = (
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    str(Path(__file__).parent / "engine"),
    "<frozen ",
)
"""Where the code of Python, of installed packages and of the engine is."""

_importing: list[str] = []
"""Who imports code of the user at this moment."""


@contextmanager
def importing(who: str) -> Iterator[None]:
    """In this block, `who` imports code that is the user's."""
    _importing.append(who)
    try:
        yield
    finally:
        _importing.pop()


def refuse_run() -> None:
    """Called when a run is asked for: raises when that happens while a file is only imported."""
    if _importing:
        raise SettingError(
            f"start() or run() was called at {_caller()} while {_importing[-1]} imported this file; "
            'put the call under `if __name__ == "__main__":`'
        )


def _caller() -> str:
    """The innermost line of code that is not ours."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@contextmanager
def errors_in_one_line(where: str) -> Iterator[None]:
    """What the user's code raises in this block becomes one line with its place; our own errors are one already."""
    try:
        yield
    except ElastreamError:
        raise
    except SyntaxError as error:
        raise SettingError(f"{where}: {type(error).__name__}: {error.msg} at {error.filename}:{error.lineno}") from None
    except (Exception, SystemExit) as error:
        raise SettingError(f"{where}: {describe(error)}") from error


def describe(error: BaseException) -> str:
    """The error and the line of the user's code in which it arose: the innermost that is in no package."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_NOT_THE_USERS)] or frames
    where = f" at {own[-1].filename}:{own[-1].lineno}" if own else ""
    try:
        said = str(error)
    except Exception:
        said = "(an error that cannot be shown)"
    # The line is of more use than the end of a long message.
    return short(f"{type(error).__name__}: {said}", LONGEST - min(len(where), LONGEST // 2)) + short(where)


def short(value: object, longest: int = LONGEST) -> str:
    """As text that can be stored: not too long, and without half of a character."""
    text = str(value).encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= longest else text[: longest - 3] + "..."
