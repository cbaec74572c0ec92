"""The ring of a simulation (Dr-Stream, algorithm 2): the copy of a lane's state is where the next lane lives."""

from collections.abc import Collection, Mapping

from elastream.simulator.key_groups import Copy, KeyGroups, StateCosts
from elastream.simulator.state import Flags, Floats


def follow(
    its: KeyGroups, costs: StateCosts, nodes: Mapping[int, int], keys: Floats, now_s: float, changed: Collection[int]
) -> None:
    """Copies are on the machine of the next lane that lives elsewhere; a new one is whole after the next round.

    `nodes` are the machines of the lanes that own groups, in their order; lanes that `changed` own others than before.
    """
    lanes = list(nodes)
    for at, lane in enumerate(lanes):
        around = (nodes[other] for other in (*lanes[at + 1 :], *lanes[:at]))
        neighbour = next((node for node in around if node != nodes[lane]), None)
        known = its.copies.get(lane)
        if neighbour is None:
            its.copies.pop(lane, None)
        elif known is None or known.node != neighbour or lane in changed:
            learned_s = costs.copy_s(float(keys[its.groups_of(lane)].sum()))
            its.copies[lane] = Copy(neighbour, now_s + costs.ring_s + learned_s if learned_s else now_s)


def whole_copy(its: KeyGroups, lane: int, up: Flags, now_s: float) -> Copy | None:
    """The copy that can take over for a lane now; it is a copy no longer."""
    copy = its.copies.pop(lane, None)
    return copy if copy is not None and up[copy.node] and copy.whole_s <= now_s else None


def copying_cores(its: KeyGroups, costs: StateCosts, per_s: float) -> float:
    """Cores that learn what changes when so many tuples are served per second."""
    if not its.copies:
        return 0.0
    return costs.copy_s(float(its.popularity.distinct(per_s * costs.ring_s).sum())) / costs.ring_s
