"""The faults of chaos: each is a function that does something bad to a scene and says what. The stream must go on."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from elastream_lab.chaos.numbers import BATCH_ROWS
from elastream_lab.chaos.scene import Scene

Strike = Callable[[Scene, random.Random], str]

FROZEN_S = 5.0
"""How long a frozen process stays so: longer than a work may take."""

BROKER_AWAY_S = (0.5, 4.0)
"""How long a broker stays away, at least and at most, before it is started again."""

FOREIGN = (".DS_Store", "Thumbs.db", "00000001.json~", "notes.txt", "00000000-000000000000.log.bak", ".nfs000000")

POISONS = ("raises", "ends its process", "never returns")


class NotNow(Exception):
    """Nothing to strike at the moment."""


def kill_driver(scene: Scene, chance: random.Random) -> str:
    scene.kill_driver()
    return "kill -9"


def kill_jvm(scene: Scene, chance: random.Random) -> str:
    return _kill(scene.last.get("jvm"))


def kill_host(scene: Scene, chance: random.Random) -> str:
    return _kill(_host(scene, chance))


def freeze_host(scene: Scene, chance: random.Random) -> str:
    """It hangs with its works, is given up, and comes back as a zombie."""
    pid = _host(scene, chance)
    _signal(pid, signal.SIGSTOP)

    def wake() -> None:
        time.sleep(FROZEN_S)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    threading.Thread(target=wake, daemon=True).start()
    return f"for {FROZEN_S:.0f} s"


def cut_socket(scene: Scene, chance: random.Random) -> str:
    count = len(scene.last.get("hosts", ()))
    if not count:
        raise NotNow
    number = chance.randrange(count)
    scene.order(cut=number)
    return f"of host {number}"


def kill_executor(scene: Scene, chance: random.Random) -> str:
    assert scene.cluster is not None
    try:
        scene.cluster.kill_executor(chance.randrange(8))
    except (LookupError, ProcessLookupError):
        raise NotNow from None
    return "kill -9"


def kill_worker(scene: Scene, chance: random.Random) -> str:
    """As a machine that is switched off; another one is started."""
    assert scene.cluster is not None
    scene.cluster.kill_worker()
    scene.cluster.start_worker()
    return "and all that ran in it"


def step_clock(scene: Scene, chance: random.Random) -> str:
    seconds = chance.choice((-3600.0, -30.0, 30.0, 3600.0))
    scene.order(clock=seconds)
    return f"by {seconds:+.0f} s"


def slow_storage(scene: Scene, chance: random.Random) -> str:
    scene.order(storage="slow")
    return "for six entries"


def failing_storage(scene: Scene, chance: random.Random) -> str:
    scene.order(storage="fails")
    return "for one entry"


def full_disk(scene: Scene, chance: random.Random) -> str:
    """The small disk that the base is on fills up, and is emptied again."""
    ballast = scene.folder / "disk" / "ballast"
    with suppress(OSError), ballast.open("wb") as file:
        while True:
            file.write(b"\0" * (1 << 20))
    time.sleep(1.0)
    ballast.unlink(missing_ok=True)
    return "for a second"


def foreign_files(scene: Scene, chance: random.Random) -> str:
    folders = [
        path for path in (scene.base, *scene.base.rglob("*")) if path.is_dir() and "checkpoint" not in path.parts
    ]
    folder, name = chance.choice(folders), chance.choice(FOREIGN)
    (folder / name).write_bytes(b"\0not ours\xff")
    return f"{name} in {folder.relative_to(scene.folder / 'disk')}"


def poison(scene: Scene, chance: random.Random) -> str:
    assert scene.numbers is not None
    kind = chance.choice(POISONS)
    chance.choice(scene.numbers.feeders).write(20, kind)
    return f"a tuple that {kind}"


def kill_broker(scene: Scene, chance: random.Random) -> str:
    """With numbers in the topic that few have read yet."""
    assert scene.topic is not None and scene.numbers is not None
    scene.numbers.feeders[-1].write(BATCH_ROWS)
    away_s = chance.uniform(*BROKER_AWAY_S)
    scene.topic.kill_broker()
    time.sleep(away_s)
    scene.topic.start_broker()
    return f"for {away_s:.1f} s and its start"


def possible(scene: Scene, *, small_disk: bool) -> dict[str, Strike]:
    """The faults that this scene has parts for."""
    found: dict[str, Strike] = {
        "driver killed": kill_driver,
        "Spark's Java killed": kill_jvm,
        "host killed": kill_host,
        "host frozen": freeze_host,
        "socket cut": cut_socket,
        "clock steps": step_clock,
        "storage slow": slow_storage,
        "storage fails": failing_storage,
        "foreign file": foreign_files,
    }
    if scene.numbers is not None and scene.numbers.feeders:
        found["poison"] = poison
    if scene.topic is not None:
        found["broker killed"] = kill_broker
    if scene.cluster is not None:
        found |= {"executor killed": kill_executor, "worker killed": kill_worker}
    if small_disk:
        found["disk full"] = full_disk
    return found


def _host(scene: Scene, chance: random.Random) -> int:
    hosts = scene.last.get("hosts") or []
    if not hosts:
        raise NotNow
    return int(chance.choice(hosts))


def _kill(pid: int | None) -> str:
    if pid is None:
        raise NotNow
    _signal(pid, signal.SIGKILL)
    return "kill -9"


def _signal(pid: int, number: signal.Signals) -> None:
    if not Path(f"/proc/{pid}").exists():
        raise NotNow
    with suppress(ProcessLookupError):
        os.kill(pid, number)
