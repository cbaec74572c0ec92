"""Key groups of one simulated operator: who owns which, how many keys and bytes they hold, who has copies."""

from dataclasses import dataclass, field

from elastream.control import StateMoved
from elastream.routing.key_groups import Owners, dealt_out
from elastream.simulator.popularity import Popularity, added_up
from elastream.simulator.state import Floats
from elastream.topology.groupings import KEY_GROUPS


@dataclass(frozen=True)
class StateCosts:
    """Sizes and rates of keyed state. The defaults are what the engine needs for a count per key."""

    bytes_per_key: float = 10.0
    keys_per_s: float = 36_000.0
    """Keys that a host learns, from wherever it gets them."""
    mb_per_s: float = 100.0
    """Between two machines."""
    storage_mb_per_s: float = 100.0
    """From the storage to a machine."""
    ring_s: float = 1.0
    """What changed is copied to the next machine this often; 0: never."""

    def copy_s(self, keys: float) -> float:
        """How long a machine learns so many keys of another one."""
        return keys / self.keys_per_s + keys * self.bytes_per_key / (self.mb_per_s * 1e6)

    def load_s(self, keys: float) -> float:
        """The same from the storage."""
        return keys / self.keys_per_s + keys * self.bytes_per_key / (self.storage_mb_per_s * 1e6)


@dataclass(frozen=True)
class Copy:
    """A lane's state on another machine, whole from a second on."""

    node: int
    whole_s: float


@dataclass
class KeyGroups:
    """One operator that keys choose the lanes of."""

    name: str
    place: int
    first: int
    """Its first lane, among the lanes of all operators."""
    pool: int
    keyed: bool
    """True when something is remembered of its keys."""
    by_load: bool
    """True when groups are redirected by load."""
    popularity: Popularity
    owners: Owners
    wanted: Owners
    """Where the groups shall be."""
    receipt: StateMoved | None = None
    generation: int = 0
    """Transfers of an older one were cancelled."""
    giving: set[int] = field(default_factory=set)
    """Lanes that something is being transferred from."""
    on_their_way: set[int] = field(default_factory=set)
    """Groups that are being transferred to another lane."""
    homes: dict[int, int] = field(default_factory=dict)
    """Lanes that are on their way to another machine, and to which."""
    copies: dict[int, Copy] = field(default_factory=dict)
    """Per lane, the copy that the ring keeps."""
    received: int = 0
    per_s: float = 0.0
    """Tuples received until the last look at the load, and per second lately."""

    @classmethod
    def begin(
        cls, name: str, place: int, first: int, pool: int, size: int, keyed: bool, by_load: bool, keys: Popularity
    ) -> "KeyGroups":
        owners = dealt_out(range(size))
        return cls(name, place, first, pool, keyed, by_load, keys, owners, list(owners))

    @property
    def weights(self) -> Floats:
        """The part of the operator's tuples that goes to each lane of the pool."""
        return added_up(self.owners, self.popularity.of_groups, self.pool)

    def groups_of(self, lane: int) -> list[int]:
        return [group for group in range(KEY_GROUPS) if self.owners[group] == lane]

    def share(self, groups: list[int]) -> float:
        """The part of the operator's tuples that is of these groups."""
        return float(self.popularity.of_groups[groups].sum())
