"""CPU and memory of a tree of processes."""

import subprocess
import sys

from elastream.engine.measure.usage import UsageMeter, tree_usage

BURNER = """
import sys, time
while time.process_time() < 0.5: pass
print("burnt", flush=True)
sys.stdin.read()
"""

MIDDLE = """
import signal, subprocess, sys
# Nobody waits for the child: its CPU time goes with it.
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE)
sys.stdin.readline()
child.stdin.close()
child.wait()
print("gone", flush=True)
sys.stdin.read()
"""


def test_usage_is_that_of_the_processes_that_are_named() -> None:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as child:
        its, all_of_them = tree_usage(child.pid).resident_bytes, tree_usage().resident_bytes
        assert child.stdin is not None
        child.stdin.close()
    assert 0 < its < all_of_them
    assert tree_usage(child.pid) == (0, 0)


def test_a_process_that_nobody_waited_for_is_still_counted() -> None:
    meter = UsageMeter()
    command = [sys.executable, "-c", MIDDLE, BURNER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as middle:
        assert middle.stdin is not None and middle.stdout is not None
        assert middle.stdout.readline() == "burnt\n"
        alive = meter.look()
        assert tree_usage(middle.pid).cpu_s >= 0.5
        middle.stdin.write("end it\n")
        middle.stdin.flush()
        assert middle.stdout.readline() == "gone\n"
        # What the kernel still knows is less than what was used.
        assert tree_usage(middle.pid).cpu_s < 0.5
        assert meter.look().cpu_s >= alive.cpu_s >= 0.5
        middle.stdin.close()
    assert alive.resident_bytes > 0


def test_a_meter_begins_at_nothing() -> None:
    begun = tree_usage().cpu_s
    assert begun > 0
    assert UsageMeter().look().cpu_s < begun
