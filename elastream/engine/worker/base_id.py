"""Which base this is: a random name in the base itself, by which a worker sees that it looks at the driver's."""

import socket
import uuid
from functools import lru_cache

from elastream.errors import BaseUnusable
from elastream.lanes import Store
from elastream.lanes.sealed import seal, unexpected, unseal

FILE = "base.json"


def base_id(store: Store, new: str | None = None) -> str:
    """In the driver: the name of the base; a new one gets this, or one of its own."""
    known = known_id(store)
    if known is None:
        known = (new or uuid.uuid4().hex)[:12]
        store.write(FILE, seal("base", {"id": known}))
    return known


@lru_cache(maxsize=16)
def check_base(store: Store, expected: str) -> None:
    """In a worker, once: what has the base's address here is the driver's base, and no directory of this machine."""
    try:
        known = known_id(store)
    except OSError as error:
        raise BaseUnusable(
            f"base {store}: {_HERE} cannot read it: {error}; have executors run as the user of the driver, or mend its permissions there"
        ) from None
    if known != expected:
        raise BaseUnusable(
            f"base {store}: {_HERE} {'does not see it' if known is None else 'has another directory there'}; name one that all "
            "machines of the cluster mount at the same place, or an address such as hdfs://... or s3://..."
        )


_HERE = f"machine {socket.gethostname()}"


def known_id(store: Store) -> str | None:
    """The name of a base; None when it has none yet."""
    if not store.exists(FILE):
        return None
    found = unseal("base", store.read(FILE), f"{store}/{FILE}").get("id")
    if not isinstance(found, str):
        raise unexpected("base", f"{store}/{FILE}")
    return found
