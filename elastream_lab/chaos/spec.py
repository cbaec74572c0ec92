"""The run that chaos attacks, as its driver is told on its command line."""

from typing import Any

import msgspec


class RunSpec(msgspec.Struct, frozen=True):
    """Travels to the driver as JSON. Without `app` it is the flow of chaos itself."""

    folder: str
    master: str
    per_second: float
    seconds: float
    edges: bool
    """True: with a source and an operator that Spark serves."""
    servers: str | None = None
    """Of the Kafka broker that numbers come through as well."""
    app: str | None = None
    options: dict[str, Any] = {}
    """Of the application: see `apps.load.OPTIONS`."""
    trace: str | None = None

    def to_text(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_text(cls, text: str) -> "RunSpec":
        return msgspec.json.decode(text, type=cls)
