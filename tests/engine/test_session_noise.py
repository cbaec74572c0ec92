"""What Spark says by itself when its Java process goes first is no concern of the user's."""

from types import SimpleNamespace
from typing import Any

from elastream.engine.spark.session import _hush_accumulators


def test_only_the_end_of_java_is_hushed() -> None:
    said: list[Any] = []
    server = SimpleNamespace(handle_error=lambda request, address: said.append(address))
    _hush_accumulators(SimpleNamespace(_accumulatorServer=server))  # type: ignore[arg-type]
    for error in (EOFError(), ConnectionResetError(), ValueError("a defect")):
        try:
            raise error
        except Exception:
            server.handle_error(None, type(error).__name__)
    assert said == ["ValueError"]
