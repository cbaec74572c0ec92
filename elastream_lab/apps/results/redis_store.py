"""Counts in Redis: deliveries enter, each as one script, which the server runs as a whole.

A row is a field of a hash: the hash is named by the table and all key columns but the last, the field by the last one, and
the count is its value. `HGETALL campaign_views:BASE:CAMPAIGN` gives the views of a campaign by window.
"""

from urllib.parse import quote, unquote

import pyarrow as pa

from elastream.errors import SettingError
from elastream_lab.apps.results.address import Address
from elastream_lab.apps.results.redis_client import Redis, Word
from elastream_lab.apps.results.table import DELIVERIES, Rows, Table

STORE = """
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return 0 end
for i = 2, #KEYS do
  local field, value = ARGV[2 * i - 2], ARGV[2 * i - 1]
  local known = redis.call('HGET', KEYS[i], field)
  if not known or tonumber(known) < tonumber(value) then redis.call('HSET', KEYS[i], field, value) end
end
redis.call('SADD', KEYS[1], ARGV[1])
return 1
"""
"""Redis does not take back the beginning of a script that fails. What is kept is the greatest, so it may come again."""


class RedisResults:
    def __init__(self, address: Address) -> None:
        self._shown = address.shown
        self._redis = Redis(address)

    def create(self, table: Table) -> None:
        """Nothing has to be made; only tables of counts can be."""
        if not table.greatest or table.best or len(table.key) < 2:
            raise SettingError(
                f"database {self._shown}: expected counts, and {table.name} is another kind of table; "
                "name a SQLite file or postgresql://..."
            )
        self._redis.check()

    def store(self, table: Table, delivery: str, rows: Rows) -> bool:
        assert table.greatest is not None
        count = table.columns.index(table.greatest)
        hashes, words = list[str](), list[str]()
        for row in rows:
            *names, field = (str(value) for place, value in enumerate(row) if place != count)
            hashes.append(":".join([table.name, *(quote(name, safe="") for name in names)]))
            words += [field, str(row[count])]
        script: list[Word] = ["EVAL", STORE, len(hashes) + 1, DELIVERIES, *hashes, delivery, *words]
        return self._redis.run(script) == [1]

    def read(self, table: Table) -> Rows:
        if table.name == DELIVERIES:
            return [(member.decode(),) for member in self._redis.run(("SMEMBERS", DELIVERIES))[0]]
        rows: Rows = []
        for name in self._hashes(table):
            parts = [unquote(part) for part in name.decode().split(":")[1:]]
            words = self._redis.run(("HGETALL", name))[0]
            for field, count in zip(words[::2], words[1::2], strict=True):
                values = iter([*parts, field.decode()])
                row = [count.decode() if column == table.greatest else next(values) for column in table.columns]
                pairs = zip(row, table.schema.types, strict=True)
                rows.append(tuple(int(value) if pa.types.is_integer(kind) else value for value, kind in pairs))
        return rows

    def close(self) -> None:
        self._redis.close()

    def _hashes(self, table: Table) -> set[bytes]:
        found, cursor = set[bytes](), b"0"
        while True:
            cursor, names = self._redis.run(("SCAN", cursor, "MATCH", f"{table.name}:*", "COUNT", 1000))[0]
            found |= set(names)
            if cursor == b"0":
                return found
