"""Java processes that end with this one: their input is a pipe, and they end when it is closed, in whatever way."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from elastream.errors import RunFailed

END_S = 10.0
"""How long a process has to end by itself."""


@dataclass(frozen=True)
class Java:
    """One Java program: its classes, the memory it may use and what it is told."""

    name: str
    classpath: Sequence[str]
    main: str
    heap_mb: int
    arguments: Sequence[str]

    def command(self, folder: Path) -> list[str]:
        home = os.environ.get("JAVA_HOME")
        java = f"{home}/bin/java" if home else shutil.which("java")
        if java is None:
            raise RunFailed("bench peers: expected Java 17 or newer, found none; install one or set JAVA_HOME")
        # Flink's serializers look into the JDK's own classes; temporary files go with the run.
        opened = [f"--add-opens=java.base/java.{part}=ALL-UNNAMED" for part in ("lang", "util", "time")]
        options = [f"-Xmx{self.heap_mb}m", f"-Djava.io.tmpdir={folder}", "-Dlog4j2.configurationFile=log4j2.properties"]
        return [java, *options, *opened, "-cp", os.pathsep.join(self.classpath), self.main, *self.arguments]


class Started:
    """A program that runs, and the file that it writes its messages to."""

    def __init__(self, java: Java, folder: Path) -> None:
        self.name = java.name
        self.log = folder / f"{java.name}.log"
        with self.log.open("wb") as log:
            # In a group of its own: Ctrl-C is for this process, which then ends all others in order.
            self._process = subprocess.Popen(
                java.command(folder),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """A program that has ended by itself is an error."""
        code = self._process.poll()
        if code is not None:
            raise RunFailed(
                f"bench peers: {self.name} ended with exit code {code}; its last words:\n{self.last_words()}"
            )

    def last_words(self) -> str:
        said = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([line for line in said if line.strip() and not line.lstrip().startswith("at ")][-12:])

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except BaseException as error:
            self._process.kill()
            self._process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise


@contextmanager
def started(java: Java, folder: Path) -> Iterator[Started]:
    """Run it until the end of the block. When that is left by an error or by Ctrl-C, it is killed at once."""
    program = Started(java, folder)
    try:
        yield program
    except BaseException:
        program.kill()
        raise
    program.end()
