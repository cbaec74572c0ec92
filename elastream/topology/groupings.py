"""How the tuples of one edge are shared out among the replicas of the operator behind it.

    clicks.map("parse", parse, grouping=groupings.load_balancing)
    pages.sink("store", store, grouping=groupings.fields("page"))

shuffle                evenly; the default
load_balancing         to the replica that was least busy lately
least_loaded           to the replica with the fewest queued tuples
redirection(*columns)  as shuffle, or as fields, until the load is uneven; then to replicas with more room
fields(*columns)       tuples with the same values in these columns go to the same replica
partial_key(*columns)  each key has two replicas; the one with the shorter queue gets the tuple
direct(column)         a column holds the number of the replica
custom(function)       your function chooses the replica
local                  the replica with the sender's number
global_                all tuples to the first replica
all_                   every tuple to every replica

A subclass of `Grouping` is a grouping of your own, with all that these have: see `help(groupings.Grouping)`.
"""

from collections.abc import Callable
from typing import Any

from elastream.routing.all_ import All
from elastream.routing.base import Grouping as Grouping
from elastream.routing.custom import Custom
from elastream.routing.direct import Direct
from elastream.routing.fields import Fields
from elastream.routing.global_ import Global
from elastream.routing.key_groups import KEY_GROUPS as KEY_GROUPS
from elastream.routing.least_loaded import LeastLoaded
from elastream.routing.load_balancing import LoadBalancing
from elastream.routing.local import Local
from elastream.routing.partial_key import PartialKey
from elastream.routing.redirection import Redirection
from elastream.routing.shuffle import Shuffle

shuffle: Grouping = Shuffle()
load_balancing: Grouping = LoadBalancing()
least_loaded: Grouping = LeastLoaded()
all_: Grouping = All()
global_: Grouping = Global()
local: Grouping = Local()


def fields(*columns: str) -> Grouping:
    """Tuples with the same values in these columns go to the same replica: `fields("page")`."""
    return Fields(columns)


def redirection(*columns: str) -> Grouping:
    """By what waits in front of each replica, once that is uneven (Dr-Stream, algorithm 1).

    Without columns: shuffle while the load is even, else to the replicas with most room. With columns: as `fields`, but whole
    key groups go to the replicas with most room, with what waits of them and with their state.
    """
    return Redirection(columns)


def partial_key(*columns: str) -> Grouping:
    """Each key has two replicas to go to; the one with less in front of it gets the tuple."""
    return PartialKey(columns)


def direct(column: str) -> Grouping:
    """The sender names the replica: the column holds its number, counted among the active ones."""
    return Direct((column,))


def custom(function: Callable[..., Any]) -> Grouping:
    """`function(batch, replicas) -> array` chooses: a replica from 0 to replicas - 1 for each row of a `pyarrow.RecordBatch`.

        def by_size(batch, replicas):
            return numpy.asarray(batch.column("bytes")) % replicas

    It runs where tuples are sent, like an operator's function, and must be picklable in the same way. It sees the columns of
    the sender and `_due`. The number of replicas may differ from call to call. A simulator cannot call it and refuses it.
    """
    return Custom(function)
