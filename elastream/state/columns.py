"""The columns of a keyed operator's key and state, as a ledger keeps them."""

from typing import NamedTuple, Self

import pyarrow as pa

from elastream.lanes.segments import decode_schema, encode_schema

_KEYS = b"keys"


class KeyedColumns(NamedTuple):
    """A base has them in the order in which they were first declared."""

    key: pa.Schema
    state: pa.Schema

    def encode(self) -> str:
        """As one schema, which says how many of its columns are the key."""
        metadata = {_KEYS: str(len(self.key)).encode()}
        return encode_schema(pa.schema([*self.key, *self.state], metadata=metadata))

    @classmethod
    def decode(cls, text: str) -> Self:
        schema = decode_schema(text)
        keys = int((schema.metadata or {})[_KEYS])
        fields = list(schema)
        return cls(pa.schema(fields[:keys]), pa.schema(fields[keys:]))

    def followed_by(self, new: "KeyedColumns") -> "KeyedColumns | None":
        """What a base has when these become those: new columns come behind; None when something was changed or removed."""
        if not self.key.equals(new.key):
            return None
        for field in self.state:
            if field.name not in new.state.names or new.state.field(field.name).type != field.type:
                return None
        more = [field for field in new.state if field.name not in self.state.names]
        return KeyedColumns(new.key, pa.schema([*self.state, *more]))
