"""Threads that never keep a process from ending: an operator, a job of Spark's or Spark itself may hang."""

import logging
import queue
import threading
from collections.abc import Callable

Task = Callable[[], object]

log = logging.getLogger("elastream")


def within(seconds: float, task: Task) -> bool:
    """Do this in a thread of its own and wait no longer than that; False when it is not done by then. It must not fail us."""
    done = threading.Event()

    def doing() -> None:
        try:
            task()
        except Exception as error:
            log.debug("while closing: %s: %s", type(error).__name__, error)
        finally:
            done.set()

    threading.Thread(target=doing, name="elastream-closing", daemon=True).start()
    return done.wait(seconds)


class DaemonPool:
    """Up to `most` threads, started when they are first needed."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._free = 0
        """Threads that have nothing to do, less the tasks that wait for one."""
        self._closed = False

    def submit(self, task: Task) -> None:
        """Do this as soon as a thread is free, in the order of asking."""
        with self._lock:
            self._free -= 1
            if self._free < 0 and self._threads < self._most:
                self._free += 1
                self._threads += 1
                threading.Thread(target=self._serve, name=f"{self._name}-{self._threads}", daemon=True).start()
        self._tasks.put(task)

    def resize(self, most: int) -> None:
        """Have exactly so many threads from now on; those too many end when they are free."""
        with self._lock:
            self._most = most
            missing = most - self._threads
            self._threads = most
            self._free += missing
            for _ in range(-missing):
                self._tasks.put(None)
            threads = [
                threading.Thread(target=self._serve, name=f"{self._name}-{most - number}", daemon=True)
                for number in range(missing)
            ]
        for thread in threads:
            thread.start()

    def close(self) -> None:
        """Nothing more is begun; what is under way goes on."""
        self._closed = True
        for _ in range(self._threads):
            self._tasks.put(None)

    def _serve(self) -> None:
        while True:
            task = self._tasks.get()
            if task is None or self._closed:
                return
            task()
            with self._lock:
                self._free += 1
