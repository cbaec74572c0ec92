"""A base that goes on, in words: how far it is, what waits in it, and whether its sources have more."""

from elastream.engine.worker.dead_letters import DEAD_LETTERS
from elastream.lanes.state import LedgerState
from elastream.topology import Graph
from elastream.workload.replay import Replay


def in_words(graph: Graph, state: LedgerState, base: str) -> str:
    """One line for people; empty when the base is new."""
    if state.entry < 0:
        return ""
    totals = state.totals
    read = sum(
        totals[source.name].processed + totals[source.name].failed for source in graph.sources if source.name in totals
    )
    kept = {*state.outputs, DEAD_LETTERS}
    queued = sum(len(queue) for lane, queue in state.lanes.items() if lane.operator not in kept)
    exhausted = [source.name for source in graph.sources if is_exhausted(graph, source.name, state)]
    said = [f"base {base} resumes at entry {state.entry}: {read:,} read", f"{queued:,} queued"]
    said += [f"source {name} is exhausted" for name in exhausted]
    if not queued and len(exhausted) == len(graph.sources):
        said.append("nothing is left to do; fresh=True or --fresh begins anew")
    return ", ".join(said)


def is_exhausted(graph: Graph, source: str, state: LedgerState) -> bool:
    """True when a source has nothing more to read, as far as the ledger says."""
    known, replay = state.sources.get(source), graph[source].source
    if known is None:
        return False
    if isinstance(replay, Replay):
        return bool(known["next"] >= replay.arrivals.total and not known["open"])
    return bool(known.get("over"))
