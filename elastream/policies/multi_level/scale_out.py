"""Algorithm 2, the cheapest container that helps: a congested instance in, a larger configuration out."""

from dataclasses import dataclass

from elastream.control import HostObservation, Observation, OperatorObservation
from elastream.fleet import Level
from elastream.policies.multi_level.health import Congested
from elastream.policies.multi_level.table import Configuration


@dataclass(frozen=True)
class Growth:
    """The next configuration, and why. Without one nothing helps."""

    configuration: Configuration | None
    reason: str


def scale_out(observation: Observation, sick: Congested, overload: float) -> Growth:
    """A thread on the least loaded machine if that has room, else a process, else a machine with all in it."""
    now = Configuration.planned(observation)
    operator = observation.operators[sick.operator]
    if not sick.is_source and operator.replicas >= operator.most:
        return Growth(None, f"{sick}, and has the most replicas that it may have, {operator.most}")
    replicas = {} if sick.is_source else {sick.operator: operator.replicas + 1}
    machine, its = least_loaded(observation.hosts)
    if not its or not observation.fleet:
        # Nobody can be asked for containers.
        return Growth(now.with_more(replicas, {}), f"{sick}: one replica more")
    cpu, memory = its[0].machine_cpu, its[0].machine_memory
    where = f"{machine} has CPU {cpu:.2f}, memory {memory:.2f}"
    # Replicas that wait for something outside need a thread, and hardly a core.
    waits = operator.waits and not sick.is_source
    if memory <= overload and (cpu <= overload or waits):
        free = max(its, key=lambda host: host.free_cores / host.cores)
        if waits or (not sick.is_source and free.busy_cores <= overload * free.cores):
            return Growth(*_thread(observation, operator, now, replicas, f"{sick}; {where}"))
        hosts = observation.level(Level.HOST)
        if hosts is not None and hosts.planned < hosts.most:
            more = {Level.HOST: hosts.planned + 1}
            said = f"{sick}; {where}, and no process with room: {_takes(observation, Level.HOST)}"
            return Growth(now.with_more(replicas, more), said)
    executors = observation.level(Level.EXECUTOR)
    if executors is None or executors.planned >= executors.most:
        most = (
            "no machines to ask for"
            if executors is None
            else f"no more than {executors.level.count(executors.most)} can be had"
        )
        return Growth(None, f"{sick}; {where}: {most}")
    more = {Level.EXECUTOR: executors.planned + 1}
    hosts = observation.level(Level.HOST)
    if hosts is not None:
        # A machine comes with its whole hierarchy: as many processes as the others have.
        more[Level.HOST] = hosts.planned + max(1, round(hosts.planned / executors.planned))
    return Growth(now.with_more(replicas, more), f"{sick}; {where}: {_takes(observation, Level.EXECUTOR)}")


def least_loaded(hosts: tuple[HostObservation, ...]) -> tuple[str, list[HostObservation]]:
    """The machine with the least CPU in use, and the hosts on it."""
    machines: dict[str, list[HostObservation]] = {}
    for host in hosts:
        machines.setdefault(host.machine, []).append(host)
    return min(machines.items(), key=lambda its: its[1][0].machine_cpu, default=("", []))


def _thread(
    observation: Observation, operator: OperatorObservation, now: Configuration, replicas: dict[str, int], said: str
) -> tuple[Configuration, str]:
    """One replica more in a process that is there; a thread more per process for those that wait."""
    seats, hosts = observation.level(Level.SEAT), observation.level(Level.HOST)
    waiting = 1 + sum(o.replicas for o in observation.scalable() if o.waits)
    if operator.waits and seats is not None and hosts is not None and waiting > seats.planned * hosts.planned:
        return now.with_more(replicas, {Level.SEAT: seats.planned + 1}), f"{said}: {_takes(observation, Level.SEAT)}"
    return now.with_more(replicas, {}), f"{said}: a replica in a thread, {_takes(observation, Level.SEAT)}"


def _takes(observation: Observation, level: Level) -> str:
    """The container that is chosen, and how soon it is there."""
    state = observation.level(level)
    soon = f", there in {state.start_s:.2g} s" if state is not None else ""
    return f"the cheapest that helps is one {level.value} more{soon}"
