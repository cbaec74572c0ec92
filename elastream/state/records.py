"""Keys and what is known of them, as bytes: MessagePack, checked against what was declared."""

import copy
import datetime as dt
import decimal
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypedDict

import msgspec
import pyarrow as pa

from elastream.topology import KeyedState

REMOVED_S = -1.0
"""When a record that is to be forgotten has changed last."""

FIRST_S, LAST_S = -62_135_596_800.0, 253_402_300_800.0
"""The times that a datetime can have, in seconds since 1970."""


class KeyRecord(msgspec.Struct, array_like=True):
    """What is known of one key. Its columns are attributes, which subclasses have, one class per operator."""

    _changed_s: float | None = None
    """When it changed last, where keys are forgotten after a time."""

    _timers: list[float] | None = None
    """When it is to be woken, by the clock and by the watermark."""

    _event_timers: list[float] | None = None

    def wake_at(self, at: "float | dt.datetime") -> None:
        """Have `on_timer` called when the clock has reached this time, once."""
        self._timers = sorted({*(self._timers or ()), _seconds(at)})

    def wake_at_event(self, at: "float | dt.datetime") -> None:
        """The same when the watermark has."""
        self._event_timers = sorted({*(self._event_timers or ()), _seconds(at)})

    def remove(self) -> None:
        """Forget the key: all columns are as for a new one. It is there again when one of them is set afterwards."""
        new = type(self)()
        for name in self.__struct_fields__:
            setattr(self, name, getattr(new, name))
        self._changed_s = REMOVED_S


class RecordCodec:
    """Bytes of the keys and records of one operator."""

    def __init__(self, state: KeyedState, key_schema: pa.Schema, columns: Sequence[str] = ()) -> None:
        """`columns`: the order in which a base has them, from its beginning on; new ones come behind."""
        self.state = state
        self.key_schema = key_schema
        known = [name for name in columns if name in state.schema.names]
        self.columns = [*known, *(name for name in state.schema.names if name not in known)]
        self.schema = pa.schema([state.schema.field(name) for name in self.columns])
        fields = [
            (name, _python_type(field.type) | None, _default(state.initial.get(name)))
            for name, field in zip(self.columns, self.schema, strict=True)
        ]
        made: Any = msgspec.defstruct("State", fields, bases=(KeyRecord,))
        self.record_type: type[KeyRecord] = made
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
        self._decoder = msgspec.msgpack.Decoder(self.record_type)
        self._key_type = tuple[*(_python_type(field.type) for field in key_schema)]  # type: ignore[misc]
        self._key_decoder = msgspec.msgpack.Decoder(self._key_type)
        self._types: dict[str, Any] = {name: kind for name, kind, _ in fields}

    # -- keys

    def key_bytes(self, values: Sequence[Any]) -> bytes:
        return self._encoder.encode(values)

    def key_of(self, data: bytes) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self._key_decoder.decode(data)
        return found

    # -- records

    def new(self) -> KeyRecord:
        return self.record_type()

    def record_of(self, data: "bytes | memoryview", now_s: float) -> KeyRecord:
        """A record that is too old is as a new one."""
        record: KeyRecord = self._decoder.decode(data)
        return self.new() if self.is_expired(record, now_s) else record

    def is_expired(self, record: KeyRecord, now_s: float) -> bool:
        ttl_s, changed_s = self.state.ttl_s, record._changed_s
        return ttl_s is not None and changed_s is not None and changed_s + ttl_s <= now_s

    def timers_of(self, data: bytes) -> tuple[list[float], list[float]]:
        """When a record is to be woken: by the clock, and by the watermark."""
        record = self._decoder.decode(data)
        return record._timers or [], record._event_timers or []

    def is_expired_bytes(self, data: bytes, now_s: float) -> bool:
        return self.is_expired(self._decoder.decode(data), now_s)

    def bytes_of(self, record: KeyRecord, now_s: float) -> bytes | None:
        """None for one that is to be forgotten. Raises `ValueError` with one line when a column is not what it was declared."""
        if self.state.on_timer is None and (record._timers or record._event_timers):
            raise ValueError("state: is to be woken, but nobody is there to do it; declare on_timer=")
        if self.state.event_time is None and record._event_timers:
            raise ValueError("state: is to be woken by events, but nothing says when they happen; declare event_time=")
        removed = record._changed_s == REMOVED_S
        record._changed_s = None
        if removed and record == self.new():
            return None
        if self.state.ttl_s is not None:
            record._changed_s = now_s
        try:
            data = self._encoder.encode(record)
            self._decoder.decode(data)
        except (msgspec.ValidationError, TypeError, OverflowError, ValueError, RecursionError) as error:
            raise ValueError(f"state: {self._wrong(record) or error}") from None
        return data

    def _wrong(self, record: KeyRecord) -> str:
        for name, field in zip(self.columns, self.schema, strict=True):
            value = getattr(record, name)
            try:
                msgspec.msgpack.decode(self._encoder.encode(value), type=self._types[name])
            except (msgspec.ValidationError, TypeError, OverflowError, ValueError, RecursionError):
                return f"column {name!r} is declared {field.type}, and was set to {type(value).__name__} {value!r:.80}"
        return ""

    # -- tables

    def to_rows(self, pairs: Iterable[tuple[bytes, bytes]], now_s: float) -> pa.Table:
        """Keys and records as a table: the columns of the key, then those of the state."""
        keys: list[tuple[Any, ...]] = []
        records: list[KeyRecord] = []
        for key, data in pairs:
            record = self._decoder.decode(data)
            if not self.is_expired(record, now_s):
                keys.append(self.key_of(key))
                records.append(record)
        columns = [
            pa.array([key[place] for key in keys], field.type) for place, field in enumerate(self.key_schema)
        ] + [pa.array([getattr(record, field.name) for record in records], field.type) for field in self.schema]
        return pa.Table.from_arrays(columns, schema=pa.schema([*self.key_schema, *self.schema]))


def _seconds(at: "float | dt.datetime") -> float:
    seconds = at.timestamp() if isinstance(at, dt.datetime) else float(at)
    # Not a number is not between them either.
    if not FIRST_S <= seconds <= LAST_S:
        raise ValueError(
            f"a timer is at a time between the years 1 and 9999, got {seconds}; give seconds since 1970 or a datetime"
        )
    # Timers are kept in microseconds.
    return round(seconds, 6)


def _default(value: Any) -> Any:
    if isinstance(value, list | dict | set | bytearray):
        return msgspec.field(default_factory=lambda: copy.deepcopy(value))
    return value


def _plain(value: Any) -> Any:
    """Numbers of numpy and times of pandas, as Python has them."""
    for convert in ("to_pydatetime", "item", "tolist"):
        if hasattr(value, convert):
            return getattr(value, convert)()
    raise TypeError(f"{type(value).__name__} cannot be kept")


def _python_type(kind: pa.DataType) -> Any:
    """What a column's values are in Python."""
    if pa.types.is_boolean(kind):
        return bool
    if pa.types.is_integer(kind):
        bits, signed = kind.bit_width, pa.types.is_signed_integer(kind)
        if bits == 64:
            return int
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        return Annotated[int, msgspec.Meta(ge=low, le=high)]
    simple: list[tuple[Any, Any]] = [
        (pa.types.is_floating, float),
        (pa.types.is_string, str),
        (pa.types.is_large_string, str),
        (pa.types.is_binary, bytes),
        (pa.types.is_large_binary, bytes),
        (pa.types.is_fixed_size_binary, bytes),
        (pa.types.is_timestamp, dt.datetime),
        (pa.types.is_date, dt.date),
        (pa.types.is_time, dt.time),
        (pa.types.is_duration, dt.timedelta),
        (pa.types.is_decimal, decimal.Decimal),
    ]
    for check, found in simple:
        if check(kind):
            return found
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return list[_python_type(kind.value_type) | None]  # type: ignore[misc]
    if pa.types.is_map(kind):
        # As pyarrow gives them.
        return list[tuple[_python_type(kind.key_type), _python_type(kind.item_type) | None]]  # type: ignore[misc]
    fields = {kind.field(place).name: _python_type(kind.field(place).type) | None for place in range(kind.num_fields)}
    return TypedDict("Row", fields)  # type: ignore[operator]
