"""The platform benchmark: what it asks, how it is read, and that the simulator calibrated by it gives the same table."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from pyspark.sql import SparkSession
from simulations import TURNS, line, sized

from elastream.cli.main import main
from elastream.simulator.cluster import Cluster
from elastream.simulator.containers import Startup
from elastream.simulator.events import Events
from elastream.simulator.fidelity import Fidelity
from elastream.simulator.model import Node
from elastream.simulator.profile import OperatorTimes, load_profile
from elastream.workload import constant
from elastream_lab.bench.common.document import document_of
from elastream_lab.bench.platform.command import LEVELS, PlatformBench, Step, advice, configurations, ends, levels
from elastream_lab.bench.platform.filter import FILTERS
from elastream_lab.bench.platform.model import fit_crowding, simulate_rows, simulated_per_s
from elastream_lab.bench.platform.runs import Borne, Containers, measure_platform

CORES = 2
MEASURED = {
    "computes": {
        (1, 1): (3687, 0.257),
        (1, 2): (3816, 0.254),
        (1, 8): (4131, 0.235),
        (2, 8): (7257, 0.254),
        (4, 8): (5968, 0.288),
    },
    "waits": {
        (1, 1): (432, 0.091),
        (1, 4): (1758, 0.053),
        (1, 16): (6936, 0.034),
        (1, 64): (13088, 0.066),
        (2, 64): (17776, 0.034),
    },
}
"""On two cores, by processes and threads: tuples per second, and milliseconds of a core per tuple."""
WAITED_MS = {(1, 1): 2.192, (1, 4): 2.176, (1, 16): 2.201, (1, 64): 3.444, (2, 64): 2.6}


def row(kind: str, hosts: int, threads: int, per_second: float, cpu_ms: float) -> Borne:
    service_ms = WAITED_MS.get((hosts, threads), 2.2) if kind == "waits" else cpu_ms
    return Borne(kind, 1, hosts, threads, per_second, service_ms / 1e3, cpu_ms / 1e3, 1.0, 900.0, 6.0)


ROWS = [row(kind, *at, *its) for kind, found in MEASURED.items() for at, its in found.items()]


def bench(rows: list[Borne], simulated: list[float]) -> PlatformBench:
    return PlatformBench(False, "this machine", 1, CORES, tuple(rows), tuple(simulated), 0.003, 0.3, 0.0)


def test_the_simulated_table_has_the_shape_of_the_measured_one() -> None:
    found = bench(ROWS, simulate_rows(load_profile(None).machine, ROWS))
    for kind in FILTERS:
        for level in ("threads", "processes"):
            rows = found.level(kind, level)
            assert len(rows) > 1
            for (_, before, simulated_before), (_, after, simulated) in pairwise(rows):
                measured = after.per_second / before.per_second
                # Where one configuration bears clearly more or less than the one before, the other table has it, too.
                assert simulated / simulated_before == pytest.approx(measured, rel=0.25)
    assert found.apart() < 0.1 and found.met


def test_without_a_lock_per_process_threads_would_bear_too_much() -> None:
    """What the interpreter's lock does is in the model: the same threads in two processes bear more."""
    machine, times = load_profile(None).machine, OperatorTimes(0.0022, 0.03, 0.0)
    one, two = (simulated_per_s(machine, times, "waits", Containers(1, hosts, 64)) for hosts in (1, 2))
    assert two > 1.2 * one


def test_the_crowding_of_a_machine_is_found_again() -> None:
    machine = replace(load_profile(None).machine, cores=CORES, thread_crowding=0.004, process_crowding=0.4)
    rows = [replace(its, cpu_s=0.00025 if its.kind == "computes" else 4e-5, service_s=0.0022) for its in ROWS]
    made = [replace(its, per_second=rate) for its, rate in zip(rows, simulate_rows(machine, rows), strict=True)]
    threads, processes = fit_crowding(replace(machine, thread_crowding=0.0, process_crowding=0.0), made)
    assert threads == pytest.approx(0.004, rel=0.2) and processes == pytest.approx(0.4, rel=0.1)
    # Rows that cannot tell leave what is known.
    alone = [its for its in made if its.containers == Containers(1, 1, 1)]
    assert fit_crowding(machine, alone) == (0.004, 0.4)


def test_configurations_vary_one_kind_of_container_at_a_time() -> None:
    found = configurations("waits", 4, 3, 8)
    assert [its.threads for its in levels(found, 4)["threads"]] == [1, 2, 4, 8, 16, 32, 64]
    assert [its.hosts for its in levels(found, 4)["processes"]] == [1, 2, 4, 8]
    assert levels(found, 4)["machines"] == [Containers(1, 4, 64), Containers(2, 8, 128), Containers(3, 12, 192)]
    assert levels(configurations("computes", 2, 1, 4), 2)["machines"] == []
    assert ends(configurations("computes", 2, 1, 4), 2) == [Containers(1, h, t) for h, t in ((1, 1), (1, 8), (4, 8))]


def test_the_report_says_which_containers_help() -> None:
    found = bench(ROWS, [its.per_second for its in ROWS])
    said = found.to_markdown()
    assert "Threads help up to 8 (x1.12). Processes help up to 2 (x1.76); 4 bear -18%." in said
    assert "Threads help up to 64 (x30.30). Processes help up to 2 (x1.36)." in said
    assert advice("processes", [Step(1, 1.0), Step(2, 1.05)]) == "More processes than one do not help (x1.05 with 2)."
    assert advice("machines", []) == ""
    document = json.loads(json.dumps(document_of(found)))
    assert document["met"] and set(document["gains"]["waits"]) == set(LEVELS)
    assert not bench(ROWS, [2 * its.per_second for its in ROWS]).met


def test_the_profile_has_the_crowding_that_was_measured() -> None:
    known = load_profile(None)
    machine = bench(ROWS, [1.0] * len(ROWS)).profile(known).machine
    assert (machine.thread_crowding, machine.process_crowding) == (0.003, 0.3)
    assert replace(machine, thread_crowding=0, process_crowding=0) == replace(
        known.machine, thread_crowding=0, process_crowding=0
    )


@pytest.mark.parametrize(("hosts", "cpu"), [(1, 1.0), (2, 1.0), (8, 1.0), (1, 0.2), (2, 0.2)])
def test_both_fidelities_crowd_alike(hosts: int, cpu: float) -> None:
    model = line(constant(400, 20.0), length=1, pool=8, times=OperatorTimes(0.01, cpu, 0.0), nodes=(Node(4),))
    system = TURNS._replace(cores=4, hosts=hosts, thread_crowding=0.02, process_crowding=0.3)
    ticks, events = (
        sized(model, "static:replicas=8", system, fidelity, seconds=20.0).events.finished
        for fidelity in (Fidelity, Events)
    )
    assert ticks == pytest.approx(events, rel=0.03)


def test_hosts_beyond_the_cores_bear_less_and_fewer_hosts_use_fewer_cores() -> None:
    model = line(constant(2000, 10.0), length=1, pool=8, times=OperatorTimes(0.005, 1.0, 0.0), nodes=(Node(4),))
    system = TURNS._replace(cores=4, process_crowding=0.3)
    served = {
        hosts: sized(model, "static:replicas=8", system._replace(hosts=hosts), seconds=10.0).events.finished
        for hosts in (1, 2, 4, 8)
    }
    assert served[2] == pytest.approx(2 * served[1], rel=0.05) and served[4] == pytest.approx(4 * served[1], rel=0.1)
    assert served[8] == pytest.approx(served[4] / 1.3, rel=0.05)


def test_a_machine_without_memory_is_gone() -> None:
    model = line(constant(400, 60.0), length=1, times=OperatorTimes(0.01, 1.0, 0.0), nodes=(Node(1, memory_gb=2),))
    cluster = Cluster(nodes=model.nodes, startup=Startup(process_gb=1.0), tuple_kb=100.0)
    # A replica serves 100 of 400 tuples per second: a gigabyte is full of the others after 33 s.
    run = sized(model, "static:replicas=1", TURNS, seconds=60.0, cluster=cluster)
    assert [what for _, what in run.record.crashes] == ["machine 0: out of memory"]
    assert run.record.crashes[0][0] == pytest.approx(33.5, abs=1.5)
    late = [sample for sample in run.record.series.operators["op0"] if sample.t_s > 40]
    assert late and not any(sample.processed for sample in late)
    fuller = replace(cluster, startup=Startup(process_gb=0.9, processes=2))
    assert sized(model, "static:replicas=1", TURNS, seconds=60.0, cluster=fuller).record.crashes[0][0] < 10
    roomy = replace(cluster, tuple_kb=0.0)
    assert not sized(model, "static:replicas=1", TURNS, seconds=60.0, cluster=roomy).record.crashes


def test_a_cluster_without_a_shared_directory_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "platform", "--master", "spark://127.0.0.1:7077"]) == 2
    assert "--master and --base go together" in capsys.readouterr().err


@pytest.mark.slow
def test_a_configuration_is_measured(spark: SparkSession) -> None:
    found = measure_platform("waits", 1, 1, 4, master="local[4]", warm_up_s=0.3, seconds=1.0)
    # Four threads that wait 2 ms each bear no more than 2,000 tuples per second, and more than one of them.
    assert 500 < found.per_second <= 2000 and found.service_s > 0.002 and found.memory_mb and found.cores
    assert found.containers == Containers(1, 1, 4)
