"""The log file of a run: events with timestamps in the base, in a few files of a bounded size."""

import logging
import logging.handlers
import os
import time
from io import TextIOWrapper

from elastream.lanes.private_files import open_file
from elastream.lanes.store import Store

FOLDER = "logs"
NAME = "elastream.log"
PACKAGE = "elastream"
"""The logger of this package."""

MAX_BYTES = 2 << 20
OLDER_FILES = 4


class RunLog:
    """Writes events of one run and warnings of this package, from any thread. A full disk stops nothing."""

    def __init__(self, store: Store) -> None:
        """Only for a base on a disk: object stores cannot append."""
        store.make_folder(FOLDER)
        self.path = str(store.local_path / FOLDER / NAME)
        self._file = _PrivateFile(self.path)
        self._file.setFormatter(_Formatter())
        self._warnings = _Warnings(self._file)
        logging.getLogger(PACKAGE).addHandler(self._warnings)

    def note(self, words: str, level: int = logging.INFO) -> None:
        self._file.handle(logging.LogRecord("elastream.run", level, "", 0, " ".join(words.split()), None, None))

    def close(self) -> None:
        logging.getLogger(PACKAGE).removeHandler(self._warnings)
        self._file.close()


def open_log(store: Store) -> RunLog | None:
    """None if the base is on no disk, or no file can be made in it: the stream does not depend on its log."""
    if not store.is_local:
        return None
    try:
        return RunLog(store)
    except OSError as error:
        logging.getLogger("elastream.run").warning("no log file is written: %s", error)
        return None


class _PrivateFile(logging.handlers.RotatingFileHandler):
    """Files that only their user can read. Symbolic links are not followed."""

    def __init__(self, path: str) -> None:
        super().__init__(path, maxBytes=MAX_BYTES, backupCount=OLDER_FILES, encoding="utf-8")

    def _open(self) -> TextIOWrapper:
        descriptor = open_file(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        return TextIOWrapper(os.fdopen(descriptor, "ab"), encoding="utf-8", write_through=True)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - as logging calls it
        """A line that cannot be written is lost."""


class _Warnings(logging.Handler):
    """Takes warnings of this package to the file of a run, and to standard error if no other handler shows them.

    Python prints warnings by itself only where no logger has a handler; this one is no reason to be silent.
    """

    def __init__(self, file: _PrivateFile) -> None:
        super().__init__(logging.WARNING)
        self._file = file

    def emit(self, record: logging.LogRecord) -> None:
        self._file.handle(record)
        handlers = _handlers_of(record.name)
        # Of several runs in one process, one shows it.
        if (
            handlers[0] is self
            and all(isinstance(one, _Warnings) for one in handlers)
            and logging.lastResort is not None
        ):
            logging.lastResort.handle(record)


def _handlers_of(name: str) -> list[logging.Handler]:
    """All handlers that see records of this logger."""
    logger: logging.Logger | None = logging.getLogger(name)
    handlers: list[logging.Handler] = []
    while logger is not None:
        handlers += logger.handlers
        logger = logger.parent if logger.propagate else None
    return handlers


class _Formatter(logging.Formatter):
    """`2026-01-31T12:00:00.123Z WARNING elastream.run: words`, in UTC."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime
